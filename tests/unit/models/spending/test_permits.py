"""Who asks what: a question is known by its words, whatever the order in which it is asked."""

from contextlib import closing
from itertools import count

import pytest
from hypothesis import given, strategies as st

from replan import Question, QuestionError, ask_user
from replan.ports.ask_user import Waiting
from replan.ports.run_context import using
from replan.specialists.steps.step_record import Asker
from replan.state.questions import fingerprint_of

WORDS = st.sampled_from(["Which?", "Why?", "More?", "When?"])


def asker(known=(), most=99):
    numbers = count(1)

    def new(question):
        if next(numbers) > most:
            raise QuestionError("enough")
        return question

    return Asker(1, "a", known=known, new=new)


def open_question(text, number, **fields):
    key = f"1/a/{number}"
    about = fingerprint_of(key, "question", text, None)
    return Question(key=key, step_id=1, specialist="a", text=text, fingerprint=about, **fields)


@given(st.lists(WORDS, min_size=1, max_size=6), st.randoms())
def test_answers_go_to_the_words_that_they_were_given_to_in_any_order(words, random):
    """Tools that are called at once ask in any order; an answer must not go to another question."""
    numbers: dict[str, int] = {}
    known = []
    for number, word in enumerate(words, 1):
        numbers[word] = numbers.get(word, 0) + 1
        known.append(open_question(word, number, answer=f"{word} {numbers[word]}"))
    order = list(words)
    random.shuffle(order)
    one, heard_words = asker(known), {}
    for word in order:
        heard_words.setdefault(word, []).append(one.ask(word, "question", None))
    assert one.asked == []
    for word, answers in heard_words.items():
        assert answers == [f"{word} {number}" for number in range(1, numbers[word] + 1)]
    with pytest.raises(Waiting) as raised:
        one.ask(words[0], "question", None)
    assert raised.value.question.ordinal == len(words) + 1


def test_an_answer_without_words_goes_to_the_question_at_its_place():
    known = [open_question("", 2, answer="two")]
    one = asker(known)
    with pytest.raises(Waiting) as raised:
        one.ask("First?", "question", None)
    assert raised.value.question.key == "1/a/1"
    one = asker([open_question("First?", 1, answer="one"), *known])
    assert one.ask("First?", "question", None) == "one"
    assert one.ask("Second?", "question", None) == "two"


def test_a_try_that_is_over_asks_nothing_and_neither_does_one_that_asked_enough():
    one = asker(most=1)
    with closing(one), using(asker=one):
        with pytest.raises(Waiting):
            one.ask("Which?", "question", None)
        with pytest.raises(QuestionError, match="enough"):
            one.ask("Why?", "question", None)
    with pytest.raises(QuestionError, match="is over"):
        one.ask("Which?", "question", None)
    with pytest.raises(QuestionError, match="outside a"):
        ask_user("Which?")
