"""Makes the fixtures of cast.py known to every test here; holds none itself."""

import pytest

pytest.register_assert_rewrite("parties", "cast")

from cast import agent, armed, house, lone_house  # noqa: E402, F401
