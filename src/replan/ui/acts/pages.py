"""The addresses of all acts, and who may do them."""

from replan.ui.acts import answering, chatting, editing, starting, steering
from replan.ui.site import Page

_RUN, _STEP, _CHAT = "/runs/{run_id}", "/runs/{run_id}/steps/{step:int}", "/chat/{session_id}"
ACTING = (
    Page(method="POST", path=f"{_RUN}/answer", does=answering.answer, role="answer"),
    Page(method="GET", path=f"{_RUN}/stop", does=steering.ask_stop, role="run"),
    Page(method="POST", path=f"{_RUN}/stop", does=steering.stop, role="run"),
    Page(method="GET", path=f"{_RUN}/resume", does=steering.ask_resume, role="run"),
    Page(method="POST", path=f"{_RUN}/resume", does=steering.resume, role="run"),
    Page(method="GET", path=f"{_STEP}/retry", does=steering.ask_retry, role="operate"),
    Page(method="POST", path=f"{_STEP}/retry", does=steering.retry, role="operate"),
    Page(method="GET", path=f"{_STEP}/skip", does=steering.ask_skip, role="operate"),
    Page(method="POST", path=f"{_STEP}/skip", does=steering.skip, role="operate"),
    Page(method="GET", path=f"{_RUN}/plan", does=editing.edit, role="run"),
    Page(method="POST", path=f"{_RUN}/plan", does=editing.edited, role="run"),
    Page(method="GET", path="/start", does=starting.ask_start, role="run"),
    Page(method="POST", path="/start", does=starting.start, role="run"),
    Page(method="GET", path="/chat", does=chatting.chats, role="read"),
    Page(method="GET", path=_CHAT, does=chatting.chat, role="read"),
    Page(method="POST", path=_CHAT, does=chatting.say, role="run"),
    Page(method="GET", path=f"{_CHAT}/changes", does=chatting.changes, role="read"),
    Page(method="POST", path=f"{_CHAT}/answer", does=chatting.answer, role="answer"),
)
"""What the pages do."""
