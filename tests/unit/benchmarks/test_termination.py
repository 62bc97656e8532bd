"""The benchmark of termination, over a few teams."""


def test_it_tells_how_each_run_ended_and_that_no_law_was_broken(rows):
    found = rows("termination", "--runs", "25")
    assert {row["table"] for row in found} == {"How the runs ended"}
    *ends, every = found
    assert every["end"] == "all"
    assert every["runs"] == sum(row["runs"] for row in ends) == 25
    assert every["broken laws"] == 0
    assert all(row["highest share of the bound"] <= 1 for row in found)


def test_a_seed_draws_the_same_team_again(script):
    adversaries = script("adversaries")
    first, again = adversaries.adversary(7), adversaries.adversary(7)
    assert (first.habits, first.config.limits) == (again.habits, again.config.limits)


def test_a_broken_law_is_told(script):
    adversaries = script("adversaries")
    limits = adversaries.adversary(0).config.limits
    ended = adversaries.Ended(calls=3, bound=2, left_over=1)
    left = adversaries.Measure(rounds=1, able_steps=1, stalls=1, calls=1)
    ended.measures = [(left, 1, 0), (left, 1, 0)]
    ended.state = {"current_round": 99, "usage": adversaries.Usage(calls=2)}
    assert len(ended.faults(limits)) == 7
