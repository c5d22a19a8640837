"""LangChain's standard suite for sandboxes, against a real one."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from deepagents.backends.protocol import SandboxBackendProtocol
from langchain_tests.integration_tests import SandboxIntegrationTests

from barchan.deepagents import BarchanBackend
from live_server import LiveServer

# Tests whose assertions contradict deepagents since 0.7: writing overwrites, globs are absolute and
# find regular files. Each counts only while the installed suite still asserts the old thing; a
# newer suite makes it a test like the others.
OUTDATED = {
    "test_write_existing_file_fails": '"already exists" in result.error.lower()',
    "test_glob": '== ["x.py"]',
    "test_glob_basic_pattern": 'assert "file1.txt" in paths',
    "test_glob_with_directories": "assert dir_count == 2",
    "test_glob_hidden_files_explicitly": '".hidden1" in paths or ".hidden2" in paths',
    "test_glob_with_character_class": 'assert "file1.txt" in paths',
    "test_glob_with_question_mark": 'assert "file1.txt" in paths',
}


class TestBarchanBackend(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self, server: LiveServer) -> Iterator[SandboxBackendProtocol]:
        with BarchanBackend.create(
            image="host", server=server.url, api_key=server.api_key
        ) as backend:
            yield backend


def outdated(name: str) -> Any:
    """The suite's own test, expected to fail."""
    original = getattr(SandboxIntegrationTests, name)

    def test(self: Any, sandbox_backend: SandboxBackendProtocol, sandbox_test_root: str) -> None:
        original(self, sandbox_backend, sandbox_test_root)

    test.__name__ = name
    reason = "the suite asserts what deepagents changed in 0.7"
    return pytest.mark.xfail(reason=reason, strict=True)(test)


for _name, _sign in OUTDATED.items():
    if _sign in inspect.getsource(getattr(SandboxIntegrationTests, _name)):
        setattr(TestBarchanBackend, _name, outdated(_name))
