"""Where the commands of a runbook run: which service, which cluster, which of Kafka's tools.

Runbooks have the shortest form of a command; what is the same for all of them is added here, so that a printed command can
be copied as it stands.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from service.runbooks.commands import CHANGING, OF_CLUSTER, OF_SERVER, Command
from service.runbooks.kafka_tools import CONTROLLERS, KAFKA_TOOLS, SERVERS
from service.runtime.children import module_command

ANY_BROKERS: Final = "HOST:PORT"
SANDBOX: Final = "sandbox"
SHOW_TRANSACTION: Final = ("tx", "show")  # of the cluster; who fenced whom is the service's
SANDBOX_TOOL: Final = ("tidemark", "sandbox", "tool")


class NotRunnableError(Exception):
    """Why a command can only be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all commands of a runbook have in common; paths are absolute."""

    of_server: tuple[str, ...] = ()  # options by which a command queries the same Tidemark
    of_server_also: tuple[str, ...] = ()  # where a command queries none by itself
    bootstrap_servers: str = ""  # empty: not known
    config: Path | None = None  # settings file
    command_config: Path | None = None  # properties of Kafka's tools
    kafka_tools: str | None = None  # a folder of scripts, or `sandbox`; None: those on PATH

    def complete(self, command: Command) -> tuple[str, ...]:
        """Return the words that run a command, with the addresses of the service and of the cluster."""
        words, tool = command.words, command.kafka_tool
        if tool is not None and self.kafka_tools == SANDBOX:
            return (*SANDBOX_TOOL, tool, *words[1:])
        if tool is not None:
            has_controllers = any(word.startswith(CONTROLLERS) for word in words)
            return (words[0], *self._of_tool(tool, has_controllers=has_controllers), *words[1:])
        path, named = command.path, 1 + len(command.path)
        if path in OF_SERVER | CHANGING:
            return (*words[:named], *self.of_server, *words[named:])
        if path == SHOW_TRANSACTION:
            return (*words[:named], *self._of_cluster(), *self.of_server_also, *words[named:])
        if path in OF_CLUSTER:
            return (*words[:named], *self._of_cluster(), *words[named:])
        return words

    def with_sandbox(self, command: Command) -> tuple[str, ...] | None:
        """Return the other form of a command of Kafka's, with the sandbox's jars; None if it has none."""
        tool = command.kafka_tool
        if tool is None or self.kafka_tools == SANDBOX:
            return None
        return (*SANDBOX_TOOL, tool, *command.words[1:])

    def program(self, command: Command) -> tuple[str, ...]:
        """Return the program and the arguments that run a command, in an environment for our own children.

        Raises:
            NotRunnableError: something about it is not known.
        """
        if not command.is_complete:
            raise NotRunnableError(_incomplete(command))
        words, tool = self.complete(command), command.kafka_tool
        if ANY_BROKERS in words:
            raise NotRunnableError("the brokers are not known: --bootstrap-servers HOST:PORT")
        if tool is None or self.kafka_tools == SANDBOX:
            return module_command("service", *words[1:])
        return (self._script(tool), *words[1:])

    def _script(self, tool: str) -> str:
        for name in (tool, tool.removesuffix(".sh")):
            path = shutil.which(name, path=self.kafka_tools)
            if path is not None:
                return path
        where = "on PATH" if self.kafka_tools is None else f"in {self.kafka_tools}"
        raise NotRunnableError(f"{tool} is not {where}: --kafka-tools sets the folder")

    def _of_tool(self, tool: str, *, has_controllers: bool) -> tuple[str, ...]:
        if not KAFKA_TOOLS[tool].queries_brokers:
            return ()
        servers = () if has_controllers else (SERVERS, self.bootstrap_servers or ANY_BROKERS)
        file, option = self.command_config, KAFKA_TOOLS[tool].config_option
        return servers if file is None else (*servers, option, str(file))

    def _of_cluster(self) -> tuple[str, ...]:
        config = () if self.config is None else ("--config", str(self.config))
        return (*config, "--bootstrap-servers", self.bootstrap_servers or ANY_BROKERS)


def _incomplete(command: Command) -> str:
    if command.missing:
        names = ", ".join(command.missing)
        return f"the alert has no value for {names}"
    return f"fill in {', '.join(command.blanks)} and run it by hand"
