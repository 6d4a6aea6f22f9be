"""State of a voice session, folded from its inputs. Plain data without audio.

`State` is the whole; each part is a struct of its own. `step` changes a copy of `State` and of its groups; all other values are
immutable and are replaced as a whole.
"""

from voxbridge.services.voice.core.state.client import Client as Client
from voxbridge.services.voice.core.state.client import Mark as Mark
from voxbridge.services.voice.core.state.conversation import NOTHING as NOTHING
from voxbridge.services.voice.core.state.conversation import Conversation as Conversation
from voxbridge.services.voice.core.state.conversation import Earlier as Earlier
from voxbridge.services.voice.core.state.conversation import Screen as Screen
from voxbridge.services.voice.core.state.conversation import ScreenPart as ScreenPart
from voxbridge.services.voice.core.state.realtime import Closed as Closed
from voxbridge.services.voice.core.state.realtime import Hearing as Hearing
from voxbridge.services.voice.core.state.realtime import Link as Link
from voxbridge.services.voice.core.state.realtime import Note as Note
from voxbridge.services.voice.core.state.realtime import OpenCall as OpenCall
from voxbridge.services.voice.core.state.realtime import Opening as Opening
from voxbridge.services.voice.core.state.realtime import Outage as Outage
from voxbridge.services.voice.core.state.realtime import Owed as Owed
from voxbridge.services.voice.core.state.realtime import Ready as Ready
from voxbridge.services.voice.core.state.realtime import RealtimeState as RealtimeState
from voxbridge.services.voice.core.state.realtime import Response as Response
from voxbridge.services.voice.core.state.realtime import Resumes as Resumes
from voxbridge.services.voice.core.state.realtime import Resumption as Resumption
from voxbridge.services.voice.core.state.realtime import ToolCalls as ToolCalls
from voxbridge.services.voice.core.state.reply import Call as Call
from voxbridge.services.voice.core.state.reply import Order as Order
from voxbridge.services.voice.core.state.reply import Piece as Piece
from voxbridge.services.voice.core.state.reply import Playback as Playback
from voxbridge.services.voice.core.state.reply import Reply as Reply
from voxbridge.services.voice.core.state.reply import Round as Round
from voxbridge.services.voice.core.state.reply import SpokenBy as SpokenBy
from voxbridge.services.voice.core.state.reply import Stamps as Stamps
from voxbridge.services.voice.core.state.reply import Synthesis as Synthesis
from voxbridge.services.voice.core.state.session import Counters as Counters
from voxbridge.services.voice.core.state.session import Display as Display
from voxbridge.services.voice.core.state.session import Late as Late
from voxbridge.services.voice.core.state.session import Notice as Notice
from voxbridge.services.voice.core.state.session import Ownership as Ownership
from voxbridge.services.voice.core.state.session import Pending as Pending
from voxbridge.services.voice.core.state.session import Question as Question
from voxbridge.services.voice.core.state.session import Settings as Settings
from voxbridge.services.voice.core.state.session import State as State
from voxbridge.services.voice.core.state.session import Steered as Steered
from voxbridge.services.voice.core.state.speech import Speech as Speech
from voxbridge.services.voice.core.state.speech import Spoken as Spoken
from voxbridge.services.voice.core.state.speech import Utterance as Utterance
from voxbridge.services.voice.core.state.team import Handoff as Handoff
from voxbridge.services.voice.core.state.team import Team as Team
