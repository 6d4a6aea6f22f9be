"""Things that people say when they want words and no function: what the router learns to tell requests from."""

from __future__ import annotations

from typing import Final

LINES: Final = tuple(
    line.strip()
    for line in """
hello
hi there
hey you
good morning to you
good afternoon
nice to meet you
how are you
how are you doing today
how do you feel
what's up
what's new
how was your day
did you sleep well
are you there
can you hear me well
is anybody there
who are you
what's your name
what can I call you
where do you come from
are you a robot
are you human
who built you
do you ever sleep
do you dream
do you have a family
are you happy
what do you like
what's your favourite food
which team do you support
what languages do you speak
can you speak Spanish
please speak more slowly
talk louder please
say that again
could you repeat that
pardon
what was that
I didn't hear you
I don't get it
what do you mean
that's not right
you got that wrong
no that's not it
that's enough
be quiet
stop talking
hold on
just a moment
let me think about it
wait
never mind
forget it
it doesn't matter
okay
all right
got it
I see
right
yes
yes that's right
yeah
sure
of course
no
no thanks
not really
maybe later
perhaps
please do
please go on
continue
and then what happened
tell me more about that
why is that
why not
really
are you sure
that's interesting
cool
wow
amazing
that's great
perfect
very nice
well done
good job
you are funny
you're very kind
thank you
thanks a lot
thank you so much
that's all for now
that was all thank you
goodbye
bye bye
see you later
have a nice day
sleep well
talk to you soon
I am tired
I'm hungry
I feel a bit sad today
I'm so happy
I had a long day
I'm bored out of my mind
my back hurts
I have a headache
my daughter started school
my dog is very old
my friend is getting married
we are going on holiday next week
I went swimming with the kids
I got a new job
it's raining again
it's so hot outside
what a beautiful evening
I love chocolate
I hate Mondays
guess what happened
you won't believe this
let me tell you something
can I ask you something
let's chat a little
I need somebody to talk to
cheer me up
tell me a joke
tell me another one
tell me a bedtime story about a bear
sing something
make up a rhyme
write a poem about the sea
say something nice
tell me something interesting
tell me a fact about penguins
play a word game with me
what is the capital of Spain
which country is the biggest
who is the queen of Denmark
who wrote Don Quixote
who discovered penicillin
who was Napoleon
when did the Titanic sink
when was the wall in Berlin built
where do kangaroos live
where does coffee come from
why is the sky blue
why do cats purr
why do we dream
how does a rainbow form
how do bees make honey
how does the internet work
how do magnets work
how high is the Eiffel tower
how deep is the ocean
how many people live in India
how many planets are there
how long does a flight to Japan take
how do you spell necessary
what does ambitious mean
what's another word for tired
what is the difference between weather and climate
what is love
what is democracy
what are dinosaurs
what is an atom made of
what happens when we die
what came first the chicken or the egg
what's your opinion on art
do you believe in ghosts
is there life on other planets
is chocolate bad for you
is it healthy to skip breakfast
explain how a car engine works
explain the rules of tennis
tell me about ancient Egypt
tell me about Beethoven
describe a sunset
give me an idea for dinner
what should I cook tonight
how do I make pancakes
how long should I boil potatoes
what can I give my mother for her birthday
how can I sleep better
how do I stay motivated
how do I learn a language quickly
what's a good exercise for the back
any tips for a job interview
recommend me a movie
which book should I read next
where should I go on vacation
what would you do in my place
help me decide between tea and coffee
should I buy a bicycle
what can you do
what are you able to do
I need your help
help
what is your age
are you hungry too
why are bananas bent
how is glass made
compliment me
thanks for nothing
which animal lives longest
is coffee good for the heart
what year did the first train run
how far away are the stars
""".strip().splitlines()
)
