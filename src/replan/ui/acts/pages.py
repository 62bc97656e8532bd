"""The addresses of all acts, and who may do them."""

from functools import partial

from replan.server.doors.runs import Action
from replan.ui.acts import answering, chatting, editing, starting, steering, telling
from replan.ui.site import Page

_RUN, _STEP, _CHAT = "/runs/{run_id}", "/runs/{run_id}/steps/{step:int}", "/chat/{session_id}"
_ACTIONS: tuple[Action, ...] = ("retry", "skip")
ACTING = (
    Page(method="POST", path=f"{_RUN}/answer", handler=answering.answer, role="answer"),
    Page(method="GET", path=f"{_RUN}/stop", handler=steering.ask_stop, role="run"),
    Page(method="POST", path=f"{_RUN}/stop", handler=steering.stop, role="run"),
    Page(method="GET", path=f"{_RUN}/resume", handler=steering.ask_resume, role="run"),
    Page(method="POST", path=f"{_RUN}/resume", handler=steering.resume, role="run"),
    *(
        Page(
            method=method,
            path=f"{_STEP}/{action}",
            handler=partial(do, action=action),
            role="operate",
        )
        for action in _ACTIONS
        for method, do in (("GET", steering.ask_correction), ("POST", steering.correct))
    ),
    Page(method="GET", path=f"{_RUN}/plan", handler=editing.edit, role="run"),
    Page(method="POST", path=f"{_RUN}/plan", handler=editing.run_edited, role="run"),
    Page(method="GET", path=f"{_RUN}/message", handler=telling.ask_message, role="run"),
    Page(method="POST", path=f"{_RUN}/message", handler=telling.tell, role="run"),
    Page(method="GET", path="/start", handler=starting.ask_start, role="run"),
    Page(method="POST", path="/start", handler=starting.start, role="run"),
    Page(method="GET", path="/chat", handler=chatting.chats, role="read"),
    Page(method="GET", path=_CHAT, handler=chatting.chat, role="read"),
    Page(method="POST", path=_CHAT, handler=chatting.say, role="run"),
    Page(method="GET", path=f"{_CHAT}/changes", handler=chatting.changes, role="read"),
    Page(method="POST", path=f"{_CHAT}/answer", handler=chatting.answer, role="answer"),
)
"""What the pages do."""
