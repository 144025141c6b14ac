"""A variable that is called like a setting and is none does not pass silently."""

import pytest

from sandboxmcp.core.settings import KEYS, misspelt_variables

TOLD = {
    "SANDBOXMCP_LIMTS_MEMORY": "; did you mean SANDBOXMCP_LIMITS_MEMORY?",
    "SANDBOXMCP_MEMORY": "; did you mean SANDBOXMCP_LIMITS_MEMORY?",
    "SANDBOXMCP_DATADIR": "; did you mean SANDBOXMCP_DATA_DIR?",
    "SANDBOXMCP_QZX": "; sandboxmcp help settings lists those there are",
}


@pytest.mark.parametrize(("name", "hint"), TOLD.items(), ids=TOLD)
def test_a_misspelt_variable_is_told_with_the_nearest_name(name: str, hint: str) -> None:
    assert misspelt_variables({name: "1GiB"}) == [f"the variable {name} is no setting and changes nothing{hint}"]


def test_settings_blank_variables_and_those_of_others_are_not_told() -> None:
    environ = {key.variable: "x" for key in KEYS}
    assert misspelt_variables({**environ, "SANDBOXMCP_QZX": " ", "SANDBOX_MEMORY": "1", "SANDBOXMCP_SANDBOX": "required"}) == []
