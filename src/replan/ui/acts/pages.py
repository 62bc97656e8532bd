"""The addresses of all acts, and who may do them."""

from replan.ui.acts import answering, chatting, editing, starting, steering
from replan.ui.site import Page

_RUN, _STEP, _CHAT = "/runs/{run_id}", "/runs/{run_id}/steps/{step:int}", "/chat/{session_id}"
ACTING = (
    Page(method="POST", path=f"{_RUN}/answer", handler=answering.answer, role="answer"),
    Page(method="GET", path=f"{_RUN}/stop", handler=steering.ask_stop, role="run"),
    Page(method="POST", path=f"{_RUN}/stop", handler=steering.stop, role="run"),
    Page(method="GET", path=f"{_RUN}/resume", handler=steering.ask_resume, role="run"),
    Page(method="POST", path=f"{_RUN}/resume", handler=steering.resume, role="run"),
    Page(method="GET", path=f"{_STEP}/retry", handler=steering.ask_retry, role="operate"),
    Page(method="POST", path=f"{_STEP}/retry", handler=steering.retry, role="operate"),
    Page(method="GET", path=f"{_STEP}/skip", handler=steering.ask_skip, role="operate"),
    Page(method="POST", path=f"{_STEP}/skip", handler=steering.skip, role="operate"),
    Page(method="GET", path=f"{_RUN}/plan", handler=editing.edit, role="run"),
    Page(method="POST", path=f"{_RUN}/plan", handler=editing.edited, role="run"),
    Page(method="GET", path="/start", handler=starting.ask_start, role="run"),
    Page(method="POST", path="/start", handler=starting.start, role="run"),
    Page(method="GET", path="/chat", handler=chatting.chats, role="read"),
    Page(method="GET", path=_CHAT, handler=chatting.chat, role="read"),
    Page(method="POST", path=_CHAT, handler=chatting.say, role="run"),
    Page(method="GET", path=f"{_CHAT}/changes", handler=chatting.changes, role="read"),
    Page(method="POST", path=f"{_CHAT}/answer", handler=chatting.answer, role="answer"),
)
"""What the pages do."""
