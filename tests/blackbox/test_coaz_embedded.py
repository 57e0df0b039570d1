"""A gateway that decides by a folder of policies of its own, end to end."""

import pytest

from test_coaz_hosts import Stand, challenged, refused
from cast import result

LOOK = """permit(principal, action == Action::"tools/call", resource == tool::"look");
forbid(principal == identity::"u-eve", action, resource);
"""


@pytest.fixture(scope="module")
def stand(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embedded")
    policies = folder / "policies"
    policies.mkdir()
    (policies / "look.cedar").write_text(LOOK)
    with Stand(folder, wishes={"pdp": "embedded"}, settings={"pdp.url": "", "pdp.policies": str(policies)}) as stand:
        yield stand


def test_what_a_policy_permits_is_forwarded_and_nothing_else(stand):  # COAZ-MCP-74 COAZ-FW-43
    assert result(stand.ask())["structuredContent"]["tool"] == "look"
    before = stand.shop.calls()
    for name, token in (("nothing", None), ("look", stand.token(sub="u-eve"))):
        refused(stand.ask(name=name, token=token), -32001, "denied")
    refused(stand.ask("resources/list", None), -32001, "denied")
    challenged(stand.ask(bare=True), shown=False)
    assert stand.shop.calls() == before and stand.engine.asked == []
