"""Things that people say when they want words and no function: what the router learns to tell requests from."""

from __future__ import annotations

from typing import Final

LINES: Final = tuple(
    line.strip()
    for row in """
hello / hi there / hey you / good morning to you / good afternoon / nice to meet you / how are you / how are you doing today
how do you feel / what's up / what's new / how was your day / did you sleep well / are you there / can you hear me well
is anybody there / who are you / what's your name / what can I call you / where do you come from / are you a robot / are you human
who built you / do you ever sleep / do you dream / do you have a family / are you happy / what do you like / what's your favourite food
which team do you support / what languages do you speak / can you speak Spanish / please speak more slowly / talk louder please
say that again / could you repeat that / pardon / what was that / I didn't hear you / I don't get it / what do you mean
that's not right / you got that wrong / no that's not it / that's enough / be quiet / stop talking / hold on / just a moment
let me think about it / wait / never mind / forget it / it doesn't matter / okay / all right / got it / I see / right / yes
yes that's right / yeah / sure / of course / no / no thanks / not really / maybe later / perhaps / please do / please go on / continue
and then what happened / tell me more about that / why is that / why not / really / are you sure / that's interesting / cool / wow
amazing / that's great / perfect / very nice / well done / good job / you are funny / you're very kind / thank you / thanks a lot
thank you so much / that's all for now / that was all thank you / goodbye / bye bye / see you later / have a nice day / sleep well
talk to you soon / I am tired / I'm hungry / I feel a bit sad today / I'm so happy / I had a long day / I'm bored out of my mind
my back hurts / I have a headache / my daughter started school / my dog is very old / my friend is getting married
we are going on holiday next week / I went swimming with the kids / I got a new job / it's raining again / it's so hot outside
what a beautiful evening / I love chocolate / I hate Mondays / guess what happened / you won't believe this / let me tell you something
can I ask you something / let's chat a little / I need somebody to talk to / cheer me up / tell me a joke / tell me another one
tell me a bedtime story about a bear / sing something / make up a rhyme / write a poem about the sea / say something nice
tell me something interesting / tell me a fact about penguins / play a word game with me / what is the capital of Spain
which country is the biggest / who is the queen of Denmark / who wrote Don Quixote / who discovered penicillin / who was Napoleon
when did the Titanic sink / when was the wall in Berlin built / where do kangaroos live / where does coffee come from
why is the sky blue / why do cats purr / why do we dream / how does a rainbow form / how do bees make honey / how does the internet work
how do magnets work / how high is the Eiffel tower / how deep is the ocean / how many people live in India / how many planets are there
how long does a flight to Japan take / how do you spell necessary / what does ambitious mean / what's another word for tired
what is the difference between weather and climate / what is love / what is democracy / what are dinosaurs / what is an atom made of
what happens when we die / what came first the chicken or the egg / what's your opinion on art / do you believe in ghosts
is there life on other planets / is chocolate bad for you / is it healthy to skip breakfast / explain how a car engine works
explain the rules of tennis / tell me about ancient Egypt / tell me about Beethoven / describe a sunset / give me an idea for dinner
what should I cook tonight / how do I make pancakes / how long should I boil potatoes / what can I give my mother for her birthday
how can I sleep better / how do I stay motivated / how do I learn a language quickly / what's a good exercise for the back
any tips for a job interview / recommend me a movie / which book should I read next / where should I go on vacation
what would you do in my place / help me decide between tea and coffee / should I buy a bicycle / what can you do
what are you able to do / I need your help / help / what is your age / are you hungry too / why are bananas bent / how is glass made
compliment me / thanks for nothing / which animal lives longest / is coffee good for the heart / what year did the first train run
how far away are the stars / who is the author of Moby Dick / who composed the Moonlight Sonata / who invented the light bulb
who was Cleopatra / who is stronger a lion or a tiger / who came up with pizza / when was Mozart born / when do swallows fly south
when is the best time to plant tomatoes / when did people start writing / where is the Sahara / where do penguins live
where does the word robot come from / where would you like to live / what is the smallest bird / what is the hottest planet
what is the currency of Japan / what is the tallest tree in the world / what language do they speak in Brazil / what causes earthquakes
what makes the wind blow / what do koalas eat / what is a sonnet / what is an electron / what is quantum physics about
what is the story of Romeo and Juliet / what happened in 1989 / what was the Cold War / what were the Vikings like
what's the fastest animal / what's your favourite season / what's your favourite book / what are your hobbies
what are you thinking about / what shall we talk about / what would you do with a million dollars
what should I say to my angry neighbour / what can I do against a cold / what can I cook with eggs and spinach
what wine goes with cheese / what's a good name for a kitten / what's a nice present for a child of six
which is bigger a whale or an elephant / which instrument is hardest to learn / which came first writing or numbers / why is grass green
why do onions make me cry / why do we yawn / why is the moon sometimes orange / why are flamingos pink / why are you laughing
why should I trust you / how do birds know where to fly / how do fish breathe / how do I get a stain out of a shirt / how do I tie a tie
how do I make friends in a new city / how do I tell my parents / how do you know all that / how does a fridge keep things cold
how does chess work / how far is it to the sun / how fast is light / how long do turtles live / how many bones do we have
how many strings does a violin have / how much water should I drink / how much sleep do children need / how old is the universe
how was the world made / how would you describe yourself / is a tomato a fruit / is it true that cats have nine lives / is there a god
is green tea good for me / are there still wolves in Europe / are you smarter than me / are you listening to me / are we friends
can dogs see colours / can fish sleep / can people live on the moon / can you keep a secret / can you laugh
can you tell me about the stars / could you be a bit nicer / do plants feel anything / do you know Shakespeare
do you remember our talk / do you get tired / do you know what love is / does it hurt to get a tattoo / does honey go bad
did you know that bees dance / did dinosaurs have feathers / have you ever been to Paris / have you seen a good film
should I call my ex / should I get a dog / will robots take our jobs / would you rather fly or swim / tell me about the life of Einstein
tell me about volcanoes / tell me about your day / tell me the story of the three little pigs / tell me why people fight
tell me something I don't know / explain how planes stay in the air / explain what a prime number is / explain love to me
explain the offside rule / describe the taste of mango / give me a fun idea for the weekend / give me some encouragement
give me a quote by a philosopher / recommend some music for dinner / recommend a restaurant dish / suggest a hobby for me
teach me a word in German / translate I love you into Italian / translate cheese into Spanish / spell encyclopedia
let's play twenty questions / let's talk about space / let's talk about something else / let us be honest / say hello to my grandmother
say it like a pirate / pretend you are a king / guess my age / wish me luck / congratulate me / I passed my exam
I lost my wallet yesterday / I miss my brother / I'm going to bed now / I'm in love / I'm nervous about tomorrow / I'm cooking soup
I'm from Scotland / I like the sound of rain / I think it will snow / I never know what to say / I don't feel like working
I don't like this / I want to be happy / I was at the beach / I read a book about trees / I have two sisters / my name is Robert
my favourite colour is blue / my team lost again / my plants are dying / my baby is crying / we had fish for lunch / we got a new puppy
they are so loud next door / he is a nice man / she never listens / it was a long week / it's my birthday / it's nice to talk to you
that was a good one / that's a pity / that's too bad / that's what I thought / that sounds lovely / this is fun / this is so strange
there is a spider on the wall / not now / not yet / nothing / none of that / no way / of course not / absolutely / exactly / indeed
fine by me / great / good idea / good question / good point / oh no / oh well / oops / hm / uh huh / mm okay / well then / so what
too bad / whatever / whenever you like / as you wish / if you say so / go ahead / keep going / slow down / come on / excuse me / sorry
sorry about that / no worries / don't worry / don't be silly / cheers / much appreciated / thanks for your help / you too / same to you
see you soon / take care / until next time
""".strip().splitlines()
    for line in row.split(" / ")
)
