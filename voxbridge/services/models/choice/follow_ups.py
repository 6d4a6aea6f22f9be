"""Things that people say to have done again, with something else, what was just done: they mean something after the turn before only."""

from __future__ import annotations

from typing import Final

BARE: Final = (
    "do it again",
    "do that again",
    "once more",
    "one more time",
    "again please",
    "same again",
    "try again",
    "please try again",
    "try once more",
)
"""Lines that name nothing: after no call at all they are no request."""

LINES: Final = BARE + tuple(
    line.strip()
    for line in """
and in Madrid
and for the kitchen
and the other one
and the second file
and seven
and for tomorrow
and what about Peter
and one called summer
and then the last one
and half an hour
what about Sweden
what about the others
what about that folder
how about Texas
how about nine
how about the first one
the same for Ireland
same for the next file
the same with the blue one
do the same for the other folder
do it again with twenty
do the other one too
now the next one
now for Brazil
now one called winter
now in the other graph
now try the small one
now back to the list
then do the third
then the one for sales
also for Norway
also that she plays tennis
also the second
another one
another one for five minutes
another called river
one more
one more for an hour
one more named cloud
once more with eighty
again but with sixty
try it with the other one
try that on the second
try the first one instead
make it fifteen instead
make that twelve
make it the other one
make that thirty minutes
no the other one
no I meant Oslo
no I wanted the red one
no make it ten
no for two hours
I meant the second one
actually the first
actually make it forty
actually I liked the old one better
the other one instead
with nine instead
use the other one instead
rather the blue one
have it check the next thing
that one too
that one as well
the green one as well
put it there as well
delete that one too
open the next one
plus eleven
minus four
times three
divided by two
times that by six
and add eight to that
double it
half of it
and in miles
and in the evening
in Portugal
for ten
the next one please
the last one too
""".strip().splitlines()
)
