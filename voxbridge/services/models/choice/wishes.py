"""Things that people ask a voice assistant to do, and that no function of an installation does unless it says so: the lamp, a pizza, a
message to somebody. The router learns from them that a wish is not a call for the function that happens to be nearest.

They are kept by subject, since an installation may have functions of its own for one: a subject of which a function speaks is left out.
"""

from __future__ import annotations

from typing import Final

SUBJECTS: Final = tuple(
    tuple(line.strip() for row in subject.strip().splitlines() for line in row.split(" / "))
    for subject in """
switch off the lamp in the bedroom / dim the lights / lights on please / make it brighter in the kitchen / turn on the fairy lights
is the light in the hall still on / put the lamps out / I want the ceiling light at half
turn the lamp in the study off / get the lights going / leave a night light on / change the bulb to blue
no lights in the cellar please / the lights should go out at ten

turn the heating up / set the thermostat to twenty one / make it warmer in here / switch on the air conditioning / cool down the living room
start the fan / is the heater on / lower the temperature in the bathroom
turn the boiler off / turn off the oven at six / is the radiator hot / get the sauna ready / switch the fan in the office off
make the bedroom cooler

lock the front door / open the garage / close the blinds / pull the curtains shut / let the visitor in / ring the door bell
arm the burglar alarm / did I lock the house / open the gate for me / unlock my car
shut the garage door / roll the shutters down / shut all the windows / let the dog out / the alarm in the house should be on
open the window a little

start the washing machine / run the dishwasher / put the kettle on / make me a coffee / preheat the oven / switch on the vacuum robot
is the dryer finished / mow the lawn / feed the cat / water the plants / fill the bathtub / clean my room
get the toaster going / is my laundry done / empty the dustbin / start a load of washing / switch the oven on / hoover the hall
brew a pot of coffee / turn the hob off / boil some water for me

order sushi for two / get me a burger / I want to order Chinese food / have some flowers delivered / buy me new headphones
put milk in my shopping cart / purchase the blue shoes / order more printer paper / reorder the dog food / get a pizza delivered
where is my parcel / return the jacket that I bought / pay for my order
I'd like a cheeseburger and fries / order a bottle of wine / I need new batteries buy them / get me a birthday present for my niece
I want to buy a ticket / find me the cheapest laptop / send the shoes back / order two coffees / where's my delivery
one large margherita with olives

book a table for four / reserve a room in Vienna / book me a flight to Rome / get two tickets for the concert / reserve seats at the cinema
book a train to Hamburg / make a reservation at the Italian place / rent a car for Saturday / get me an appointment at the dentist
check me in for my flight / cancel my hotel booking
I want a room with a view for two nights / get me a seat on the train to Milan / reserve a court for tennis
get us in at the steak house at seven / book a haircut / get me an earlier flight / a table by the window for six at eight
plan my trip to Japan / put me on the first ferry to Dublin / the next bus to Bern please
when does the next train to Ghent leave / how far is Dublin from Cork / is the flight from Milan to Oslo late

call me a cab / get me a taxi to the airport / order a ride home / drive me to work / start the car / find me a parking space
how do I get to the station / navigate to the nearest hospital / show me the way home / how is the traffic / when does the bus come
is the train on time / where is the closest petrol station / find a restaurant nearby
I need a lift home / request a driver / what's the fastest route to the airport / lead the way to the castle
is the motorway jammed / how far is the drive to Leeds / when is the next tram / take me to the beach
in which street is my car

call my mother / phone the plumber / dial nine one one / call back the last number / hang up the phone / put me through to Peter
start a video call with Julia / who called me / pick up the phone / answer the door for me
ring my brother / give Laura a ring / ring the office / redial / call this number / answer the phone / decline the call
who was that on the phone / put grandma on the line

wake me at seven / set an alarm for six thirty / set my alarm to 5 am / wake me up at a quarter to eight tomorrow / alarm at nine please
remind me at noon to eat / remind me tomorrow morning about the keys / remind me on Friday to call the bank
I need an alarm at half past six / remind me at 4 pm to feed the cat / turn my alarm off at weekends
set the alarm clock to seven fifteen / wake me when the sun rises

send a message to Anna / text John that I am late / write an email to my boss / send him a postcard / reply to that mail
read my messages / any new emails / check my mailbox / forward the mail to Tom / post this on Instagram / tweet that
send my wife a heart / tell Peter that dinner is ready / let my team know I am ill / share my location / email me the bill
drop Paul a line / write to my landlord / tell my boss that I'm stuck in traffic / do I have new mail
how many unread messages are there / text my sister happy birthday / answer Tom that I agree / mail the photos to Jane
send the invitation to everybody / message the group that I'm coming

play some music / play the Beatles / put on some jazz / next song please / pause the music / turn the volume up / louder / mute the TV
skip this track / shuffle my playlist / play the radio / play the latest episode of my podcast / what song is this / stop the song
play an audio book / put on a relaxing sound
put some Bach on / play something by Queen / something quiet for dinner please / turn down the sound / make it quieter / who sings this
repeat that song / I feel like hearing the blues / sing along with me to Abba / volume down / not so loud / stop playing

turn on the TV / switch to channel five / what's on television tonight / put on Netflix / start the film / record the match
play a video about trains / rewind thirty seconds / open YouTube / show me the football game / pause the movie
find me a thriller to watch / what's showing at the cinema / turn the telly off / put the cartoons on / next episode
record tonight's show / change the channel / fast forward a bit

what's the weather like / will it rain tomorrow / do I need an umbrella / how warm is it outside / weather in London
will there be snow / when does the sun set / what is the forecast for the weekend / how windy is it
is it sunny today / how's the weather in Lima / will there be frost / does it rain in Dublin now / do I need a coat
what will Saturday be like outside / when does it get dark today / is a storm coming
is it raining in Madrid / will it snow in Vienna tomorrow / weather in Rome please / what's the weather in Boston / how warm is it in Cairo
when does the sun rise in Perth / sunset in Athens / is it cold in Stockholm / do they have snow in Quito / what's the temperature in Bern
weather in Lisbon / the weather in Tunis right now / is it raining in Dublin / is it raining there / is it snowing in Bergen / Paris weather
is it windy in Chicago / is it hot in Dubai / rain in Glasgow

what's in the news / read me the headlines / who won the match last night / what's the score / latest news on the election
how did the stock market do / what is the price of gold / how is Apple stock doing / what are the lottery numbers
how much is a euro in dollars right now
what happened in the world today / any news on the strike / who is winning the election / did Arsenal win
what was the result of the match / is the dollar up / how are my shares / how high is the interest rate now / when do the Lakers play
tell me today's news

put lunch with Anna in my calendar / what's on my schedule / when is my next meeting / move the appointment to Friday
add an event on Monday / am I free this afternoon / invite Tom to the meeting / cancel my two o'clock / get me a date at the bank
when is my dentist appointment
what have I got on tomorrow / write a birthday into my diary / arrange something with the team / when do I see the bank people
add dinner with Eva to the calendar / shift my nine o'clock to ten / on which day do I see the lawyer / put me down for Thursday
am I busy tomorrow

take a picture / take a selfie / shoot a video / record my voice / take a screenshot / show me my photos / send me that picture
scan this document / print this letter / print two copies / make a copy of the form / edit the photo / draw me a horse / paint a sunset
make me a logo
film this / snap me / start recording / print ten copies of the flyer / print out the tickets / show the pictures from Greece
crop this picture / make a drawing of a castle / design a poster / photograph the label / fax this

transfer fifty euros to Anna / pay the electricity bill / what's my bank balance / send money to my son / buy some bitcoin
sell my shares / how much did I spend this month / block my credit card / raise my salary / do my taxes / donate ten dollars
send Peter forty dollars / wire the rent / how much money do I have left / settle the invoice / withdraw two hundred pounds
top up my phone / split the restaurant bill on our cards and pay it / invest a thousand in gold / pay back Maria

track my steps / how many calories did I burn / log that I drank water / start a workout / measure my pulse / how did I sleep last night
weigh me / book a doctor / refill my prescription / call an ambulance / start my run
how far did I walk / count my push ups / write down my weight in the health app / how many steps today / check my heart rate
how many hours did I sleep / get me something against the pain / is my blood pressure okay

install an app / download the game / update the system / restart the computer / shut down windows / connect to the wifi
turn on bluetooth / turn off the phone / enable airplane mode / set the brightness to half / charge my phone / find my phone
uninstall that program / clear the cache / empty the recycle bin / make the text on my phone larger / restart the router
switch on the torch / plug in the charger
reboot the server in the basement / restart my phone / log me out of windows / switch the bluetooth on / turn the wifi off
pair my headphones / install the update / lower the brightness of the display / where is my phone / put the phone on silent
delete that app / back up my photos / turn on do not disturb

find me a job / do my homework / write my thesis / clean the house / babysit my kids / walk the dog / cut my hair / iron my shirts
fix the sink / repair my bike / build me a house / wash the car / cook dinner / fetch me a beer / fetch my slippers / give me a massage
hold my hand / dance with me / kiss me / marry me / hack into the bank / launch the rocket / fly to the moon / make it stop raining
vote for me / win the lottery for me / kill that fly / carry my bags / wake the neighbours / open a bottle of wine / hide the body
fold the laundry / paint my room / shovel the snow / peel the potatoes / pass me the salt / tie my shoes / carry me / hug me
write my exam for me / go shopping for me / pick up the kids / take out the trash / mend my trousers / scratch my back
pour me a drink / set the table / hang the picture / build a treehouse / fight my enemies / hire a clown
""".strip().split("\n\n")
)
