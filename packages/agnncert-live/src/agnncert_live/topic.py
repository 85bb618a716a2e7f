"""``Topic``: a Kafka topic whose messages a service applies, from a thread of its own, beside what comes over HTTP."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agnncert.errors import SettingsError, missing
from agnncert_live.events import Applied
from agnncert_live.service import Service
from agnncert_live.streams import DeadLetter, DeadLetterFile, EventReader, consume, dead_letters_beside

log = logging.getLogger(__name__)

GROUP = "agnncert"
POLL = 0.5  # seconds
# What the service depends on: an offset is committed when its events are in the journal, and not before.
OURS = ("enable.auto.commit", "bootstrap.servers")


@dataclass(frozen=True)
class Topic:
    """A topic, and how to reach it.

    Attributes:
        servers: Addresses of brokers, ``HOST:PORT`` with commas between them.
        name: Name of the topic.
        settings: Further settings of the client, as librdkafka calls them.
    """

    servers: str
    name: str
    settings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, file: Path | None = None) -> "Topic":
        """Returns the topic that an option names.

        Args:
            text: ``HOST:PORT/TOPIC``, with commas between several brokers.
            file: A file with further settings of the client, one ``NAME=VALUE`` per line.

        Raises:
            SettingsError: It names no topic, the file cannot be read, or it sets what the service sets.
        """
        servers, _, name = text.rpartition("/")
        if not servers or not name or ":" not in servers:
            raise SettingsError(f"--kafka {text}: expected HOST:PORT/TOPIC, as in broker:9092/payments.")
        return cls(servers, name, {} if file is None else _read_settings(file))

    def consumer(self) -> Any:
        """Returns a consumer that is subscribed to the topic. It begins at the first message that is not committed.

        Raises:
            MissingPackage: confluent-kafka is not installed.
            SettingsError: The client does not take a setting.
        """
        try:
            from confluent_kafka import Consumer, KafkaException
        except ModuleNotFoundError as error:
            raise missing(error.name, "agnncert serve --kafka") from error
        settings: dict[str, Any] = {
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            **self.settings,
            "bootstrap.servers": self.servers,
            "enable.auto.commit": False,
        }
        try:
            consumer = Consumer(settings)
        except KafkaException as error:
            raise SettingsError(f"the client of Kafka does not take its settings: {error}.") from error
        consumer.subscribe([self.name])
        return consumer


def _read_settings(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {file}: {error}.") from error
    settings = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in text.partition("="))
        if not name or not equals:
            raise SettingsError(f"{file}, line {number}: expected NAME=VALUE.")
        if name in OURS:
            raise SettingsError(f"{file}, line {number}: {name} is set by the service, leave it out.")
        settings[name] = value
    return settings


def _keeper(service: Service) -> Callable[[DeadLetter], None] | None:
    """Returns what keeps dead letters beside the journal, and counts them; None without a journal."""
    if service.live.journal_path is None:
        return None
    service.dead_letters = dead_letters_beside(service.live.journal_path)
    file = DeadLetterFile(service.dead_letters)

    def keep(letter: DeadLetter) -> None:
        file(letter)
        service.counts.dead_letters += 1

    return keep


@contextmanager
def consuming(service: Service, topic: Topic | None, read: EventReader, stop: threading.Event) -> Iterator[None]:
    """Applies the messages of a topic for as long as the block runs.

    Args:
        service: The service, which counts them.
        topic: The topic; None for none.
        read: Returns the events of a message.
        stop: Is set if the topic cannot be read any more, so that the service ends instead of missing events.

    Raises:
        Exception: What ended the reading, after the block.
    """
    if topic is None:
        yield
        return
    consumer = topic.consumer()
    keep_letter = _keeper(service)
    ended = threading.Event()
    errors: list[BaseException] = []

    def note(applied: Applied) -> None:
        service.note(applied)

    def work() -> None:
        try:
            consume(
                consumer,
                service.live,
                read=read,
                on_applied=note,
                dead_letters=keep_letter,
                running=lambda: not ended.is_set(),
                timeout=POLL,
            )
        except BaseException as error:  # whatever it is, events would be missed from now on
            log.error("the topic %s is not read any more: %s", topic.name, error)
            errors.append(error)
            stop.set()
        finally:
            consumer.close()

    thread = threading.Thread(target=work, name="topic", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30)
    if errors:
        raise errors[0]
