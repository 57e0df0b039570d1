"""Makes the fixtures of cast.py known to every test here, and has the files that take minutes begin."""

import pytest

pytest.register_assert_rewrite("parties", "cast")

from cast import agent, armed, house, lone_house  # noqa: E402, F401

# Where several files run at once, whoever begins last is waited for.
LONGEST = ["test_shim_clients.py", "test_conformance.py", "test_shim_conformance.py", "test_shim_kill.py",
           "test_known_folder.py", "test_crowds.py", "test_kill_at_random.py"]


def pytest_collection_modifyitems(items):
    place = {name: nth for nth, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))
