"""The handlers of the main thread."""

from article_writing.article_writing_agent import ArticleWritingAgent

from replan.pipelines import SubThreadExecutionHandler


class ArticleExecutionHandler(SubThreadExecutionHandler):
    """Has the article written in a sub-thread."""

    sub_thread_agent = ArticleWritingAgent
