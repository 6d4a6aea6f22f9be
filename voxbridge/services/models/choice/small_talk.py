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
greetings everyone / hiya / hello my friend / good to see you / it's good to be back / long time no see / evening to you / howdy partner
hey can we talk / I'm back / it's only me / hello is this thing on / nice weather isn't it / what a day / happy new year
merry Christmas / welcome back / how have you been / how are things / how is it going with you / are you doing okay / you sound cheerful
you sound different / did you miss me / what did you do yesterday / what do you do all night / what's on your mind
anything exciting happening / who is your maker / which company built you / where do you live / do you have parents / do you have a soul
do you have a body / do you have eyes / do you like your job / do you eat / do you laugh sometimes / do you lie
do you ever make mistakes / do you love somebody / do you want to be human / are you a man or a woman / are you clever / are you lonely
are you married / are you conscious / are you afraid of the dark / can you feel pain / can you think / can you sing / can you dance
can you cook / can you see me / can you whistle / could you marry me / would you like to be my friend / what scares you
what annoys you / what makes you different / what would you wish for / how smart are you / how do you work inside
how did you learn to speak / I like your voice / I like talking to you / I hate you / you're boring / you're weird
you are wrong about that / you are so smart / you talk too much / you never listen / you made me smile / you're the best
you saved my day / you can be proud of yourself / that was rude / that was helpful / that helps a lot / that's exactly it / that's sweet
that's awful / that's a relief / that's a long answer / that's what my mother says / that reminds me of school / that can't be true
that doesn't sound right / I meant something different / you misunderstood / let me rephrase / what was that last bit / huh / come again
one more time slowly / please speak up / you're too quiet / too fast for me / say it in plain words / in other words please
shorter please / make it shorter / more details please / give me an example / can you elaborate / why do you say so / how come
since when / says who / for real / seriously / no kidding / you don't say / I knew it / I thought so / I guess so / I doubt it / I agree
I disagree / I don't think so / I have no idea / I'm not sure / I couldn't care less / I can't believe it / I can't wait / I don't mind
I don't understand that / I understand / fair enough / makes no difference / my bad / my mistake / bless you / ouch / yikes / phew
hooray / yay / ah / aha / oh / oh dear / oh my / okay then / okay thanks / alright then / sounds good / sounds fun / very funny / lovely
wonderful / fantastic / brilliant / splendid / superb / terrific / neat / sweet / nice one / super / top / perfect thanks / great job
thanks a million / thanks again / thank you kindly / many thanks to you / that's kind of you / I appreciate it / you're welcome
no problem / don't mention it / anytime / never again / no need / not today / not for me / rather not / yep / yup / sure thing
why of course / certainly / definitely / please don't / stop it / shut up / hush / enough for now / give me a moment / give me a second
wait a minute / just thinking / I'm thinking / let me see / where was I / what were we talking about / nothing else / nothing for now
that's everything / that's it / we're done / I'm done for today / I have to go / I must run / gotta go / catch you later
see you around / bye now / bye and thanks / so long / sweet dreams / till tomorrow / have fun / enjoy your evening / I had a bad night
I had a lovely weekend / I had pancakes for breakfast / I had an argument with my wife / I had a strange dream / I got up too early
I got soaked in the rain / I got promoted / I got stuck in traffic / I forgot my umbrella / I broke my glasses / I bought new shoes
I baked a cake / I cleaned the whole house / I went to the dentist / I went to a concert / I saw an old friend
I saw a fox in the garden / I watched a movie about whales / I read the newspaper / I finished my book / I failed my driving test
I won at cards / I lost my voice / I moved to a new flat / I quit smoking / I started yoga / I'm learning to swim
I'm learning Portuguese / I'm painting the kitchen / I'm waiting for the bus / I'm on a train / I'm at home with the flu
I'm stuck at work / I'm late again / I'm getting old / I'm proud of my son / I'm worried about money / I'm angry with my landlord
I'm scared of spiders / I'm sick of this rain / I'm excited about the trip / I'm homesick / I'm a teacher / I'm a vegetarian
I'm twenty five / I'm from a small village / I am in a hurry / I feel great today / I feel like dancing / I feel like a failure
I feel much better now / I feel cold / I need a holiday / I need a hug / I need a coffee / I want to travel the world
I want to learn the piano / I wish it were summer / I hope it stops raining / I hope so / I think I'm in trouble
I think my boss hates me / I used to play football / I usually drink tea / I always lose my socks / I hardly slept
I don't like Sundays / I don't eat meat / I can't swim / I can't find love / I can't cook / I could eat a horse
I would rather stay in bed / my mother is visiting / my mother in law is coming / my father was a carpenter / my brother plays chess
my sister got engaged / my son lost a tooth / my daughter loves horses / my grandma turned ninety / my husband snores
my wife is a doctor / my boss is on holiday / my colleague talks all day / my best friend moved away / my dog ate my shoe
my cat sleeps all day / my bike was stolen / my car broke down / my phone fell into the water / my phone battery never lasts
my computer is slow / my head is spinning / my feet hurt / my tea went cold / my garden is full of snails / my roses are blooming
my favourite film is a western / my weekend was quiet / my life is a mess / our team won the cup / our neighbours are nice
our kitchen smells of garlic / our train was late / we are at the lake / we got married / we had a lot of fun / we saw dolphins
we play cards on Fridays / we lost the match / the kids are asleep / the coffee is too strong / the soup was too salty
the baby smiled at me / the bus never came / the film was too long / the sunset is beautiful / the birds are singing
the snow is melting / the party was great / the traffic is terrible / the world is crazy / the meeting took forever / the exam was hard
the doctor says I'm fine / it was my fault / it's snowing / it's getting dark outside / it's too early for this / it's Friday at last
it's a secret / it's a long story / it's nothing / it's okay / it's your turn / it's been a while / it tastes funny / it broke my heart
she said yes / she is my hero / he won't call me back / he forgot our anniversary / they invited us / somebody stole my lunch
somebody rang the door bell / nobody understands me / everybody is asleep / everything is fine / life is short / life is good
what is the capital of Kenya / what is the largest desert / what is the oldest city / what is the longest bone in the body
what is the deepest lake / what is the speed of sound / what is the boiling point of water / what is the population of Sweden
what is the best way to learn maths / what is the highest waterfall / what is the national dish of Peru / what is gravity
what is a comet / what is a metaphor / what is a marsupial / what is a mortgage / what is a vaccine / what is evolution / what is jazz
what is philosophy / what is happiness / what is time / what is yeast / what is inflation / what is a stock market
what is artificial intelligence / what is a neural network / what is a programming language / what is a hash function
what is an algorithm / what is a knowledge graph / what is open source / what is the cloud / what is a password manager
what is the point of unit tests / what does carpe diem mean / what does the heart do / what does a zebra eat / what does an architect do
what does your name mean / what do bats eat / what do bees do in winter / what do you call a baby swan / what do vegans eat
what do people do in Iceland / what are clouds made of / what are black holes / what are the seven wonders / what are the rules of rugby
what are the symptoms of a cold / what are good books for teenagers / what are prime numbers good for / what are you reading
what were dinosaurs like / what was the first computer / what was Gandhi famous for / what was the Black Death
what was your first word / what caused the first world war / what happens in a volcano / what happens at night in the forest
what happened to the dodo / what happened in the French revolution / what makes bread rise / what makes thunder so loud
what keeps planes in the air / what gives chillies their heat / what colour is a polar bear's skin / what colour suits me
what sound does a giraffe make / what should I name my goldfish / what should I paint / what should I do with my life
what should I do this weekend / what should I say at the funeral / what should I pack for Norway / what can I make with leftover rice
what can I do about hiccups / what can I do on a rainy day / what would happen without the moon / what would Einstein say
what would a pirate say / what did the Romans eat / what did Darwin find / what did people do before phones / what's a palindrome
what's a group of crows called / what's inside a golf ball / what's the best pizza topping / what's the funniest word you know
what's the plural of octopus / what's the past tense of swim / what's the moral of the story / what's the point of school
what's the secret of a long marriage / what's the trick with poached eggs / what's so special about Venice / what's wrong with me
what's your sign / what's your opinion of politicians / what's your biggest dream / what's your favourite animal
what's your favourite song / who is the president of France / who was Marie Curie / who painted the Sistine chapel / who sang yesterday
who invented paper / who invented pizza / who discovered gravity / who discovered America / who wrote the odyssey
who wrote Frankenstein / who built the pyramids / who plays the lead in Casablanca / who lives at the north pole / who do you admire
who is your favourite writer / who is the richest person / who is the fastest runner ever / who cares / who knows / who else
when did the dinosaurs die out / when did Rome fall / when did you learn to speak / when did humans discover fire
when was the camera invented / when was Shakespeare born / when was the first Olympic games / when is the longest day
when is Easter usually / when do cherries ripen / when do babies start to walk / when does winter begin in Chile
when will people live on Mars / when should I water cactuses / where is Timbuktu / where is Mount Everest / where is the Louvre
where is my mind / where do pandas live / where do bananas grow / where do babies come from / where does chocolate come from
where does the wind come from / where did the Vikings sail / where was Mozart born / where were you made
where can I see northern lights / where can I meet people / where should I propose to her / why is water wet / why is the ocean blue
why is sugar bad / why is it cold in winter / why is my bread so dry / why is he so mean / why are oranges orange
why are cats afraid of water / why are leaves green / why are people so stressed / why am I so tired all the time
why do dogs wag their tails / why do we have leap years / why do we sneeze / why do stars twinkle / why do boats float
why do knees crack / why do people lie / why do men snore / why does ice float / why does time pass so quickly
why does my cat stare at me / why does the moon change its shape / why did the Roman empire end / why did the chicken cross the road
why did you say that / why did dinosaurs grow so big / why don't we fall off the earth / why can't I sleep / why can't penguins fly
why me / why so serious / how are mountains formed / how are pencils made / how are you so calm / how big is a blue whale
how big is the universe / how cold is space / how deep can divers go / how dangerous are sharks / how did the universe begin
how did you get your name / how did Napoleon die / how do I apologize properly / how do I bake bread / how do I become rich
how do I clean a cast iron pan / how do I fix a dripping tap / how do I grow tomatoes / how do I impress her / how do I iron a shirt
how do I learn to draw / how do I make tea properly / how do I say no politely / how do I stop worrying / how do I train a puppy
how do I write a good letter / how do I talk to my boss / how do I sleep on a plane / how do babies learn to talk
how do birds find their way / how do caterpillars become butterflies / how do clouds form / how do submarines dive / how do glasses work
how do batteries work / how do computers think / how do solar panels work / how do trees drink / how do you cope with stress
how do you know that / how do you make pasta from scratch / how do you play poker / how do you feel about that
how do you pronounce quinoa / how do you spell rhythm / how does a clock work / how does a lock work / how does a battery charge
how does electricity work / how does memory work / how does soap clean / how does the heart pump / how does it feel / how far is Mars
how fast can a cheetah run / how fast does hair grow / how heavy is an elephant / how high do eagles fly / how hot is the sun
how hot is lava / how long do cats live / how long did the Hundred Years War last / how long does bread stay fresh
how long have you been here / how many bones has a shark / how many continents are there / how many hearts does an octopus have
how many keys does a piano have / how many people speak French / how many stars are in the sky / how many players has a football team
how much does a whale weigh / how much coffee is too much / how often should I wash my hair / how old is the oldest tree
how old do parrots get / how tall is the tallest man / how was the concert / how wonderful / how sad / how dare you / is a whale a fish
is a banana a berry / is Australia a continent / is glass a liquid / is it normal to talk to plants / is it rude to say that
is it wrong to lie / is it too late to change my career / is milk good for you / is red wine healthy / is running bad for the knees
is there water on the moon / is there a heaven / is time travel possible / is the earth round / is this real / is that so / is he right
isn't it lovely / are bats blind / are dolphins intelligent / are eggs bad for the heart / are mushrooms plants
are there ghosts in old castles / are tomatoes vegetables / are vampires real / are zebras white or black / are you kidding
are you angry / am I boring you / am I too old for this / am I right / can cats swim / can money buy happiness
can humans breathe under water / can parrots understand us / can a person live without sleep / can I tell you a secret / can I trust you
can I be honest with you / can you imagine / can you believe that / can you guess what I'm holding / can you teach me French
could you explain that again / could an elephant jump / could we be friends / do ants sleep / do cats love us / do fish drink water
do penguins have knees / do trees talk to each other / do spiders bite / do you know any jokes / do you know how to juggle
do you know what I mean / do you know Paris / do you believe in fate / do you believe in me / do you like rain
do you like Italian food / do you prefer summer or winter / do I look fat / do we have free will / does pluto have moons
does sugar make children wild / does money matter / does it ever snow in Africa / does anybody really know / did you hear that
did you enjoy it / did Shakespeare write everything himself / did Vikings wear horns / have you heard of Sherlock Holmes
have you got a girlfriend / have you ever seen snow / have a biscuit / had a rough day / should I tell her the truth
should I quit my job / should I learn French or Spanish / should I paint the wall yellow / should children have phones
should I wear a tie / shall we dance / shall we play a game / will it ever stop / will you marry me / will you remember me tomorrow
will cars fly one day / would you lie for me / would you like some cake / would a penguin survive in the desert / tell me a scary story
tell me a riddle / tell me a good joke about lawyers / tell me a limerick / tell me a knock knock joke / tell me your favourite joke
tell me about Iceland / tell me about elephants / tell me about your childhood / tell me about quantum mechanics / tell me about love
tell me about jazz / tell me everything about owls / tell me how rainbows work / tell me how to make an omelette
tell me how to tie a bow / tell me how you feel / tell me I'm pretty / tell me what to do / tell me what you think / tell me why
tell me who Caesar was / tell me what photosynthesis is / tell me what a sonnet is / tell me the meaning of freedom
tell me the difference between frogs and toads / tell me something about yourself / tell me the truth / tell me more
tell me when to stop / explain black holes / explain democracy to me / explain the joke / explain how rain forms
explain how bees find flowers / explain what a black box is / explain relativity in simple terms / explain the plot of Star Wars
explain why cats purr / explain yourself / describe your perfect day / describe a forest in autumn
describe the colour blue to a blind person / describe yourself in three words / describe a typical Dutch breakfast / give me advice
give me a nickname / give me a name for a puppy / give me an excuse for being late / give me a recipe for lentil soup
give me a tip for better sleep / give me three reasons to be happy / give me a synonym for big / give me a word that rhymes with moon
give me a break / give me hope / give me your honest opinion / give me a tongue twister / write me a poem / write a haiku about snow
write a love letter / write a song about coffee / write a toast for my brother's wedding / compose a birthday poem for my aunt
invent a new word / make up a story for my kids / make up a name for a band / make me happy / make me a compliment / make a silly sound
make some noise / sing happy birthday / hum a tune / let's sing together / let's play a game / let's play chess in words
let's play rock paper scissors / let's chat / let's talk about films / let's talk about my day / let's change the subject
let's get serious / let's philosophize / let's pretend we are on a ship / let it be / let go / let me think
let me tell you about my day / recommend a good podcast / recommend a book for my holiday / recommend something to watch tonight
suggest a present for my dad / suggest something for lunch / suggest a board game for four / advise me on my love life
translate good night into Greek / translate thank you into Swedish / translate cat into Latin / say good morning in Turkish
say something in Russian / say something clever / say cheese / say my name / say it again / say please / spell Mississippi
spell your name / what rhymes with love / what's another word for nice / use serendipity in a sentence / correct my grammar
count to three in Italian / quiz me on capitals / ask me a question / ask me anything / guess what / guess who I met / guess where I am
imagine you are a tree / pretend to be my grandmother / act like a cowboy / be my teacher / be honest / be nice / be serious
calm me down / comfort me / convince me / entertain me / surprise me / inspire me / motivate me / distract me / insult me / flatter me
forgive me / trust me / listen to me / look at me / look outside / keep me company / keep smiling / play it cool / don't be sad
don't leave me / don't say that / don't tell anybody / don't you dare / don't get me wrong / don't forget me / never say never / no idea
no comment / no more jokes / no offence / nobody knows / not bad / not again / not funny / not quite / not that I know / now what
now that's clever / of all things / once upon a time / one day maybe / only joking / just kidding / just asking / just wanted to say hi
just chatting / just a thought / just between us / good luck / good heavens / good for you / good point actually
better late than never / all good / all the best / all done / almost / also true / always / and then / and why / and you / any ideas
anyway / apparently / as always / as if / at last / because I say so / big deal / both / but why / by the way I love your voice
congratulations / cool story / correct / depends / ditto / easy / easy for you to say / either is fine / even better / every day
finally / first things first / forget about it / from time to time / funny you should say that / glad to hear it / happy birthday to me
hard to say / here we go again / hopefully / if only / in a way / in my opinion it's wrong / in theory / indeed it is / it depends
kind of / last one / later / leave me alone / likewise / long live the king / maybe / maybe you're right / mind your own business
I took a tour of the old town / I wrote a note to my teacher / my notes got wet / I have no time for this / time is money
the timer in my oven is broken / the page in my book is torn / my project at school is late / my password is my secret
the battery of my car is dead / the temperature outside is lovely / it's thirty degrees and I'm melting / I work in a tool shop
my uncle is an insurance agent / I'm no expert / she models for a living / the theme of the party is pirates / I like dark chocolate
I play a light sport / the tests at school were easy / I failed the maths test / my task is to wash up / I cancelled my holiday
I hate writing tests / I love writing code / I work with computers / programming is hard / my code never works / bugs drive me crazy
why is code so hard to read / why do programmers like dark themes / why are passwords so annoying / who invented the alarm clock
who invented the internet / who invented unit tests / when was Python created / how does encryption work / how do search engines work
how do time zones work / how do you calculate happiness / how do thermometers work / how is money made / is Python hard to learn
is artificial intelligence dangerous / should I learn to code / is dark mode better for the eyes / do macros make people lazy
do you like numbers / do you enjoy your work / what is a time zone / what is a bank note / what is the theme of Macbeth
what is a graph in mathematics / what is the colour of love / what is a weather model / what is the history of the calendar
what is your job / what is your purpose / what is your secret / what are tools for / what are agents in chemistry
tell me about time travel / tell me about colours in art / tell me about famous agents / tell me about your model
explain what a compiler does / explain how a timer works / explain the greenhouse effect / let's talk about time
remember when we were young / do you remember the nineties / I remember my first day at school / I never remember names
I can't remember his face / I forgot what I wanted to say / I will tell you later / nobody told me / time will tell
timing is everything
how many rooms does Buckingham palace have / how many teeth does a crocodile have / how many moons has Jupiter
how many wives had Henry the eighth / how many books are in the Bible / how many colours has a rainbow
how many days does Mercury take around the sun / how many wings has a bee / how many islands are there in Greece
how many muscles do we use to smile / how many calories are in an apple / how many notes are in an octave
how many languages are there in the world / how many seconds does a blink take / how many friends do I need / how many sides has a dice
how many letters are in the Greek alphabet / how many words does a child know / how many symphonies did Beethoven write
how many holes has a flute / how much does the earth weigh / how much sugar is in cola / how much is the Mona Lisa worth
how much does a kangaroo eat / how long does it take to learn Spanish / how long is a marathon / how long do butterflies live
how long should a nap be / how long was the longest war / how long does love last / how old was Mozart when he died
how old is Stonehenge / how old is the Queen / how tall is the tower of Pisa / how tall was Napoleon / how big was the Titanic
how wide is the Amazon / how deep is the Mariana trench / how fast does sound travel / how hot is boiling water
how cold does it get in Siberia / how often does a comet come / how common are twins / which animal sleeps the most
which bird cannot fly / which country drinks the most coffee / which fruit has the most vitamin C / which metal is liquid
which ocean is the deepest / which planet has rings / which queen ruled the longest / which sport is the oldest
which city never sleeps / which language is the hardest / which colour do you get from red and yellow / which dinosaur was the largest
which came first the phone or the telegraph / which film won most Oscars / which is healthier butter or oil
which is heavier gold or lead / what is the smallest country / what is the longest word in English / what is the rarest blood type
what is the most spoken language / what is the hardest stone / what is the heaviest metal / what is the main ingredient of hummus
what is the colour of rubies / what is the chemical symbol of gold / what is the square mile in London
what is the first line of Moby Dick / what is the tallest building / what is a group of lions called / what is a young goat called
what is a double rainbow / what is a blue moon / what is a light year / what is a tax haven / what is a red herring
what is a web browser / what is a server / what is a database / what is a password for anyway / what is machine learning
what is a chat bot / what is a computer virus / what is a search engine / what is encryption good for / what is dark matter
what is dark chocolate made of / what is a test tube / what is a time capsule / what is a project manager
what is the theme of Romeo and Juliet / what is the weather usually like in Scotland / what is the secret of good coffee
what is your view on zoos / what is your favourite number / what is your favourite word / what is your favourite time of day
what is the difference between jam and jelly / what is the difference between stars and planets / what does a compiler do
what does a notary do / what does an insurance agent do / what does the word tool come from / what does blue mean in dreams
what does it feel like to fly / what does your voice look like / what do crickets sing about / what do I do with my old laptop
what do you do when you are sad / what do I say to a crying child / what do you recommend for a first date / what do you read
what colour are flamingo eggs / what colour should I paint my bedroom / what time of year is best for Japan
what language do you dream in / what kind of music do you like / what kind of cheese is in a cheesecake / what sort of person are you
what a lovely voice / what a mess / what a pity / what nonsense / what fun / what else is new / what else can one say / what on earth
what if I fail / what if it rains / who would win a bear or a shark / who is your best friend / who was king Arthur
who was the fifth Beatle / who wrote the Jungle Book / who is taller you or me / who makes the best chocolate / who would have thought
who do you think you are / who said to be or not to be / when I was young we had no phones / when pigs fly / when is a tomato ripe
when do owls hunt / when did you wake up / when is enough enough / where have all the flowers gone / where do ideas come from
where is the best place to see whales / where did I go wrong / why does my plant have yellow leaves / why does coffee wake me up
why do songs get stuck in my head / why do cats hate closed doors / why is my computer so loud / why is my phone so slow
why is the page of a book white / why is Monday always so hard / why is it so loud here / is it normal to forget names
is it okay to eat alone / is it a good idea to dye my hair / is it possible to be too kind / is there a word for that feeling
is there a song about it / is a strawberry a nut / is the moon made of cheese / is a panda a bear / are bananas radioactive
are you on my side / are you joking / are we alone in the universe / are twins always alike / are snakes deaf / am I a bad person
am I the only one / can fish feel pain / can goats climb trees / can you keep up / can you speak like a pirate
can you tell I'm nervous / can we start over / can we be serious for a minute / can I ask you something personal
can I vent for a moment / do you mind if I smoke / do you like my new haircut / do you have siblings / do you have a favourite planet
do you have hobbies / do you ever feel lonely / do you speak Welsh / do you understand sarcasm
do you know what day the moon landing was / do you want to hear a joke / do cows have best friends / do plants sleep
do you think it will be a cold winter / do you think I should call her / do you think money helps / does chocolate help against sadness
does a cactus need water / does the queen have a passport / does it matter / does it ever end / did you like the film
did you know I was born in Bonn / did cavemen have dogs / have you any idea how late I was / have you had your coffee
should I forgive him / should I wear the blue dress / should I move to the country / should we get a second cat / should I bring wine
would you eat insects / would you go to Mars / would a cat survive in the wild / could a robot fall in love
could you live without music / in other words / in simple words please / in one sentence please / let's move on / let's drop it
let's leave it at that / let's start again / let's have a chat about football / let's agree to disagree / moving on / speaking of cats
by the way / as I was saying / long story short / back to what you said / you said that already / you already told me / you were saying
I wasn't finished / I wasn't talking to you / I was talking to my wife / I'm talking to somebody else / I didn't say anything
I didn't mean you / I said nothing / sorry wrong word / I'm thirty years old / I'm sixty and still dancing / I have three kids
I have a meeting with my ex / I have a cold / I have two left feet / I have a favourite mug / I have a crush / I weigh too much
I ran ten miles today / I slept five hours / I paid too much for it / I lost twenty pounds since May / I turned forty yesterday
I started a new job on Monday / I wrote my first poem / I opened the window / I closed the shop early / I switched to oat milk
I deleted his number / I saved a hedgehog / I cancelled my gym / I ran into my teacher / I read your mind
I searched for my glasses all morning / I remember it well / I need some time alone / I need to lose weight / I want a dog
I want to cry / I want to learn to bake / I'd love to see Japan / I'd rather not talk about it / I'd give anything for a nap
I'll never understand men / I'll be fine / I'll think about it / I'll be back / my phone is full of photos
my laptop is older than my son / my screen is dirty / my notebook has a coffee stain / my watch stopped / my alarm clock hates me
my room is too hot / my flat is freezing / my code name is eagle / my favourite tool is a hammer / my team at work is great
my agent found me a role / my model railway is huge / my graph paper ran out / my tour guide was funny / my to do list never ends
my calendar is empty / my workflow is chaos / my project got cancelled / my password was my cat's name once / this place is so quiet
this is my favourite song / this weather kills me / this coffee is terrible / this page of my life is closed / that film made me cry
that song is from my youth / that note was out of tune / that timer on the bomb was exciting / that was quick / the page boy was cute
the tool box fell on my foot / the test drive was fun / the security guard was nice / the model wore a red dress
the expert on TV was wrong / the battery in my watch died / the light in here is cosy / the dark scares me
the colours of autumn are lovely / there is no place like home / there is always tomorrow / there was a rainbow / here comes the sun
here you are again / home sweet home
what is thank you in Polish / what's cheers in Danish / what would goodbye be in Finnish / what is butterfly in German
what would sorry be in Welsh / what's the Latin word for moon / what is the antonym of brave / what's the contrary of noisy
what's another way to say lovely / tell me the story of Faust in three sentences / sum up Macbeth for me / retell Moby Dick quickly
what happens in the film Titanic / how does Robinson Crusoe end / my hamster escaped from its cage / my dog ran off yesterday
our parrot flew away / our rabbit died on Sunday / that novel kept me awake / I could not put the book down / what a thriller that was
what can I make from leftover rice / what do I cook with pumpkin / which wine suits salmon / how many feet has a lobster
how many arms has a starfish / are you awake / do you breathe / are you a living being / who brought you up / who trained you
who gave you your name / could you put that more simply / explain it like I'm five / in plain English please / what do you mean exactly
what are you trying to say / nice to get to know you / charmed I'm sure / what is a good name for a horse / what is a young kangaroo named
there are seven days in a week / a week has seven days / there are sixty seconds in a minute you know / it's 35 degrees in the shade
it was ten degrees below zero last night / the baby weighs four kilos now / he's nearly two metres tall / we drove 300 miles on Sunday
a ten kilometre walk is too much for me / the shop is two miles from here / I drink three litres of water a day / my phone has 64 gigabytes
how many days does March have / how far is it from Vienna to Prague in kilometres / how tall is the Eiffel tower in metres
how deep is the sea in fathoms / how heavy is an elephant in tonnes / how hot does an oven get in celsius / how old is the earth in years
tell me about the history of the kilogram / who invented the inch / why is a foot called a foot / who won the 1966 cup
what happened in 1789 / what did the cold war lead to / two thirds of them stayed at home / 3 / 5 of the village was there
make up a long tale of a giant in ten sentences or more / the forest in a story of at least twenty sentences please
a long story about a river please, fifteen sentences at the least / I want a very long fairy tale about winter
tell me at length about a voyage over the ocean / narrate a tale about an old village in a dozen sentences
what is the opposite of cold / name the opposite of early / which word means the contrary of wet / what's the word for hot in French
why is fire hot / what is the hottest pepper
count slowly up to fifteen for me / count aloud from one to thirty / count from ten down to zero
""".strip().splitlines()
    for line in row.split(" / ")
)
