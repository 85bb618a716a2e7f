from .client import LiveClient as LiveClient
from .events import Applied as Applied
from .events import Event as Event
from .graph import LiveGraph as LiveGraph
from .journal import JournalError as JournalError
from .spent import Spent as Spent
