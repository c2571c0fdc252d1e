"""Small children's stories from a grammar: a built-in corpus in the spirit of TinyStories (Eldan and Li, 2023).

A story is an opening, the steps of one plot and an ending. Who it is about, a friend, a grown-up, a thing, a place
and a few numbers are drawn once and come back all through it, so that a model that looks further back does better.
The patterns are those of `data/grammar.py`; {A} is the hero, {B} the friend, {G} the grown-up.
"""

from __future__ import annotations

from random import Random
from typing import Final

from lmlab.core.errors import ConfigError
from lmlab.core.randomness import stream
from lmlab.data.grammar import Choice, Draw, Grammar, parse, pick, with_articles

PRONOUNS: Final = {"he": ("he", "him", "his"), "she": ("she", "her", "her")}
CHILD: Final = {"he": "boy", "she": "girl"}
GROWN_UPS: Final = {
    "he": "Dad|Papa|Grandpa|Uncle Joe|Uncle Sol|Old Owl|Farmer Gus|Captain Finch",
    "she": "Mom|Mama|Grandma|Aunt May|Aunt Rose|Granny Bee|Old Mother Hen|Nurse Plum",
}
NAMES: Final = {
    "he": "Adam|Alfie|Andy|Ben|Bob|Bruno|Carl|Casper|Cody|Dan|David|Dylan|Eli|Emil|Ezra|Felix|Finn|Frank|Fred|Gabe|"
    "George|Gilbert|Harry|Hector|Hugo|Ian|Ivan|Jack|Jasper|Joe|Jonas|Kai|Karim|Kurt|Leo|Liam|Lucas|Mark|Max|Milo|Ned|"
    "Nick|Noah|Omar|Oscar|Otto|Pablo|Paul|Peter|Quinn|Rafi|Ralph|Remy|Rory|Sam|Simon|Stan|Ted|Theo|Tim|Toby|Tom|Tyler|"
    "Victor|Vince|Walt|Will|Xavi|Yusuf|Zack",
    "she": "Ada|Alice|Amy|Anna|Bella|Beth|Carla|Clara|Cora|Daisy|Dora|Edie|Ella|Emma|Esther|Faye|Fern|Flora|Frida|"
    "Gina|Grace|Greta|Gwen|Hana|Hazel|Heidi|Holly|Ines|Iris|Ivy|Jade|Jane|Jill|Julia|June|Kate|Kira|Lena|Lila|Lola|"
    "Lucy|Luna|Maya|Meg|Mia|Mina|Molly|Nell|Nina|Nora|Olive|Opal|Pearl|Petra|Pia|Polly|Queenie|Rita|Rosa|Ruby|Sally|"
    "Sara|Selma|Stella|Tara|Tess|Tilda|Uma|Vera|Wendy|Willa|Wren|Yara|Zara|Zelda|Zoe",
}
ANIMALS: Final = (
    "badger|bear|beaver|cub|camel|deer|donkey|duck|duckling|elephant|fox|frog|goat|goose|hamster|hedgehog|kitten|koala|"
    "lamb|lion|mole|monkey|mouse|otter|panda|penguin|piglet|pony|puppy|rabbit|raccoon|seal|skunk|squirrel|tiger|turtle|"
    "walrus|weasel|wolf|zebra"
)
MANNERS: Final = (
    "little|small|young|clever|cheerful|shy|quiet|kind|brave|tiny|curious|happy|lively|gentle|lonely|tidy|merry|noisy"
)
COLOURS: Final = "red|blue|green|yellow|orange|purple|pink|white|black|brown|silver|golden|grey"

SLOTS: Final = {
    "animal A": ANIMALS,
    "animal B": ANIMALS,
    "manner A": MANNERS,
    "manner B": MANNERS,
    "colour": COLOURS,
    "noun": "ball|balloon|basket|bell|blanket|boat|book|bucket|button|cap|clock|crown|cup|doll|drum|feather|flag|"
    "flute|guitar|hat|jar|kite|lamp|lantern|marble|mask|mirror|mitten|paintbrush|pencil|pillow|puppet|puzzle|ribbon|"
    "ring|robot|rocket|scarf|shell|shovel|spoon|star|teapot|teddy bear|top|toy car|toy horse|toy train|wagon|whistle|"
    "yo-yo",
    "look": "big|tiny|shiny|old|new|wooden|soft|lovely|pretty|little|bright|striped|round|lucky|magic|funny|velvet|"
    "dotted",
    "place": "in the park|at the beach|by the river|on the hill|in the forest|in the garden|by the pond|in the "
    "meadow|on the farm|at school|near the bridge|behind the barn|in the yard|at the market|by the lake|in the "
    "village|under the old oak tree|by the sea|in the orchard|near the mill|in the valley|by the waterfall|on the "
    "island|at the playground|in the snow|near the cave|by the lighthouse|in the square",
    "tool": "long stick|ladder|rope|broom|net|fishing rod|wooden pole|strong hook|rake|long spoon",
    "fear": "the dark|thunder|deep water|the big slide|loud noises|the old bridge|dogs|the attic|high places|the "
    "doctor|big waves|strangers|the night wind|spiders|the empty house|lightning",
    "dish": "a cake|a pie|a pot of soup|pancakes|muffins|cookies|an apple tart|a loaf of bread|plum jam|a honey cake",
    "missing": "sugar|flour|butter|honey|milk|salt|cinnamon|cream|jam|chocolate|oil",
    "building": "tree house|boat|castle|fort|bridge|raft|tower|hut|windmill|cart|stone wall|snow house",
    "skill": "swim|ride a bike|whistle|skate|climb trees|juggle|paint|fly a kite|dance|dive|read|tie a bow|play the "
    "drum|walk on a rope|sing|throw a ball|stand on one leg|row a boat",
    "pet": "bird|bunny|squirrel|bat|hedgehog|duckling|kitten|mouse|owl|turtle|fawn|sparrow|fox|lizard",
    "pet name": "Button|Dot|Lucky|Peanut|Pebble|Star|Biscuit|Pip|Muffin|Spot|Cloud|Pickle",
    "age": "3|4|5|6|7|8|9",
    "number": "2|3|4|5|6|7|8|9|10|11|12|15|20|30",
}

LISTS: Final = {
    "home": "in a [small|little|cozy|tiny|crooked|white] [house|cottage|hut|cabin] [by the <water>|near the woods|on "
    "a hill|at the end of the lane|with a <colour> [door|roof]]|in a [quiet|busy|pretty|sleepy|small] [village|town|"
    "valley] [by the <water>|under the mountains|far away|full of flowers]|[near|next to|not far from] a <size> "
    "<land>",
    "water": "sea|lake|river|stream|pond|water|brook|bay",
    "colour": COLOURS,
    "family": "mom and dad|mom|dad|grandma|two brothers|big sister|baby brother|family|three sisters|uncle|cousins|cat",
    "size": "small|big|old|brown|white|grey|tiny|muddy|wet|dusty|strange|crooked|huge|pretty|yellow|dark|round|shiny|"
    "green|little|heavy|broken|red|black|plain|lovely|odd|narrow",
    "mood": "fat|sleepy|hungry|young|lazy|curious|noisy|friendly|silly|quiet|spotted|clever|grumpy|thirsty|shy|proud|"
    "lost",
    "beast": "[<size>|<mood>] <creature>",
    "creature": "ant|bat|bee|beetle|bird|bug|butterfly|cat|chick|cow|crab|crow|dog|dragonfly|eagle|fish|fly|hen|"
    "horse|lizard|moth|mule|owl|parrot|pigeon|rat|robin|rooster|sheep|snail|snake|spider|swan|toad|worm",
    "does": "sat|slept|sang|waited|hopped|rested|hid|yawned|dug|snored|hummed|sneezed|danced|stood|dreamed|munched",
    "where": "on a [branch|fence|stone|log|leaf|gate|wall|roof|cart|stump]|under a [bush|bench|leaf|bridge|tree|"
    "barrel]|beside the [path|well|pond|road|gate|haystack]|in the [grass|shade|sun|mud|reeds|flowers|corn]",
    "land": "forest|wood|field|garden|farm|meadow|swamp|mountain|castle|mill|orchard|harbor|park|school|barn|bridge",
    "stuff": "stone|leaf|feather|coin|shell|acorn|button|stick|nut|flower|string|key|bone|pebble|penny|bottle",
    "body": "nose|tummy|heart|ears|feet|hands|knees|cheeks|toes",
    "pastime": "to [sing|dance|draw|paint|read|cook|climb|swim|run|jump|dig|hum|whistle|sleep late]|to look at the "
    "[stars|clouds|birds|bees|ships|moon|trains]|to play [hide-and-seek|tag|chess|house|pirates]|to [pick|look for] "
    "[flowers|berries|apples|nuts|mushrooms|shells]|to tell [jokes|stories|riddles]|to splash in [puddles|the "
    "<water>]|to make [hats|boats|birds|flowers] out of [paper|leaves|clay]|to count [frogs|snails|leaves|sheep|"
    "steps|coins]|to feed the [ducks|hens|fish|goats|birds]|to help {G}|to ask [many|a lot of|funny|hard] questions|"
    "to [ride|run] [fast|up and down the lane|to the <land>]",
    "nature": "kind|brave|shy|curious|clever|quiet|cheerful|gentle|busy|funny|careful|playful|polite|bold|lazy|"
    "stubborn|noisy|patient|proud|silly|sleepy|honest|hungry|messy|neat|wise",
    "When": "One [day|morning|evening|afternoon]|One [sunny|rainy|windy|cold|warm|foggy|bright|snowy|hot|grey|quiet] "
    "[day|morning|afternoon]|[On|One] <day>|After [breakfast|lunch|school|dinner|a long nap|the rain|the storm]|The "
    "next [day|morning]|Early [one|on <day>] morning|In the [spring|summer|autumn|winter]|Last [week|<day>]",
    "day": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
    "once": "one [day|morning|night|evening]|that [afternoon|night|day]|last [week|night|<day>]|on <day>|today",
    "Later": "Soon|After a while|Before long|At last|In the end|A little later|By [noon|sunset|bedtime|<day>]|<Many> "
    "[minutes|hours|days] later|When the [sun|moon] came up|Just before [lunch|dinner|dark]",
    "Many": "Two|Three|Four|Five|Six|Seven|Eight|Ten",
    "many": "2|3|4|5|6|7|8|9|10|12|two|three|four|five|six|seven|eight|nine|ten|twelve",
    "how": "|||| slowly| quickly| carefully| quietly| at once| with a [smile|sigh|shout|hop]| without a word| in the "
    "[rain|sun|wind|cold]| like a <creature>",
    "happy": "[so |very |quite |really |]happy|glad|proud|cheerful|full of joy|merry|pleased|delighted|[as happy as "
    "a <creature>|happier than ever]|so happy that {A} [sang|danced|laughed|jumped|cried] [all the way home|for "
    "<many> minutes|out loud|like a <beast>]",
    "sad": "[so |very |a bit |]sad|upset|unhappy|close to tears|worried|gloomy|troubled|[angry|cross] with "
    "{A.himself}|so sad that {A.he} [sat down|cried|lay down|could not eat] [<where>|for <many> minutes|next to the "
    "<creature>]",
    "indoors": "under the [bed|table|chair|rug|stairs|sink]|behind the [sofa|door|curtain|clock|stove|books]|in the "
    "[drawer|closet|kitchen|box|cupboard|bath|cellar]|on the [shelf|chair|windowsill|piano]|inside an old [boot|bag|"
    "chest|pot|coat]",
    "outdoors": "in the [tall grass|mud|hay|bushes|leaves|sand]|under a [rock|bench|log|leaf|cart]|behind the [fence|"
    "shed|well|wall|big stone]|near the [gate|path|swing|apple tree|nest|<land>]|beside the [road|stream|pump|<land>]",
    "food": "apples|beans|berries|bread|buns|cake|candy|carrots|cheese|cherries|cookies|corn|eggs|grapes|honey|jam|"
    "lemons|melon|muffins|noodles|nuts|oranges|pancakes|peaches|pears|peas|pie|plums|popcorn|rice|soup|toast|tomatoes",
    "snacks": "apples|berries|buns|carrots|cherries|cookies|eggs|grapes|muffins|nuts|pancakes|peaches|pears|plums|"
    "lemons",
    "walk": "walked|ran|hopped|hurried|skipped|raced|marched|went|tiptoed|wandered|strolled|rushed|crept|jumped|"
    "trotted",
    "said": "said|said|said|cried|called|whispered|replied|answered|shouted|laughed|sighed|added",
    "softly": "||| [softly|gently|kindly|slowly|quickly|at last|again]| with a [big|small|kind|shy|little|sad|warm|"
    "proud] [smile|grin|nod|wink|sigh|laugh]| in a [soft|small|kind|loud|low|high|funny|sleepy] voice",
    "play": "played [tag|catch|games|together|near the <land>|pirates|with the <creature>]|sang [a <size> song|songs|"
    "an old song about a <creature>]|laughed[ and laughed|]|danced [in a circle|in the rain|in the sun|near the "
    "<land>]|ate <food> [together|in the shade|from a big bowl|and <food>]|told [stories|jokes|riddles] about [a "
    "<beast>|{G}|the <land>]|rolled down the hill|drew pictures of [the <creature>|each other|{G}|a <colour> "
    "<creature>]|counted [clouds|stars|ships]",
}

# Below, a line is a step, the lines with a bar after it are its alternatives, and a dash begins a new paragraph.
ASIDE: Final = """
A <beast> <does> <where>[ and [watched them|looked up|did not move|waited]|].
| The [wind|rain|sun|air] was [warm|soft|cool|strong|lovely], and [it smelled of <food>|the leaves [danced|fell]].
| A [bell|dog|train|baby|<creature>] could be heard [far away|near the <land>|from the <land>|in the distance].
| {A}'s <body> [felt|went|got] [funny|warm|cold|tight|light|wet|stiff][ from the [wind|cold|sun|long walk]|].
| {B} [scratched {B.his} <body>|hummed a song about a <creature>|looked at the <creature>|kicked a <size> <stuff>].
| {B} [tripped over|picked up|found] a <size> <stuff> [and laughed|<where>|and put it in {B.his} pocket].
| A [small|big|grey|white|round|dark] cloud that looked like a <creature> [floated|drifted|sailed] over the <land>.
| {A} [ate|had] [a few|some|<many>] <snacks>[ and felt [better|stronger|sleepy]|, and {B} [ate|had] <many>].
| {B} had <food> and <food> in {B.his} [pocket|bag|basket|hat] and gave some to [{A}|the <beast>].
| They <walk> [past|around|over to] a <size> <land> and [met|saw|heard|waved at] a <beast>.
| {G} was [cooking <food>|busy with the <snacks>|looking for a <stuff>|painting the [door|wall|fence] <colour>].
| On the way, a <beast> [asked for|stole|dropped|ate] [a <stuff>|some <food>|<many> <snacks>].
"""

THANKS: Final = """
"Thank you[, {B}|]!" [said|cried|called|whispered] {A}<softly>.
| "You are [the best|a good friend|so kind|very clever|braver than a <creature>], {B}," {A} <said><softly>.
| {A} [hugged|thanked] {B} and <said><softly>, "[I will not forget it|You are my friend|I owe you <many> <snacks>]."
"""

OPENING: Final = """
[Once upon a time|Once|Long ago|Many years ago], there was {A.who} named {A} who lived <home>.
| [Once upon a time|Not so long ago|One <day>], {A.who} named {A} [lived|woke up] <home> with {A.his} <family>.
| {A} was {A.who} who lived <home>[ with {A.his} <family>|].
| There was once {A.who} named {A}, and everyone called {A.him} {A} the [Brave|Small|Quick|Kind|Curious|Loud|Sleepy].
| {A.Who} named {A} lived <home>, and {A.he} was {age} years old.
| This is [the story of|a story about] {A}, {A.who} who was [very|so|always] <nature> and lived <home>.
{A} [loved|liked] <pastime>, and {A.he} [liked|loved] <food> [too|even more|very much].
| {A.He} was <nature>[ and <nature>|], and {A.he} [loved|liked] <pastime>.
| Every [day|morning|evening|<day>], {A} [wanted|got up early|went outside|had time] <pastime>.
| {A.He} [always|often] had [a <stuff>|some <food>|<many> <snacks>] in {A.his} [pocket|bag|hat] and loved <pastime>.
{A.His} best friend was {B}, {B.who} who [loved|liked] <pastime>.
| {A} had a [friend|good friend|best friend] named {B}, {B.who} who was [very|always|a little] <nature>.
| [Next door|Across the road|Down the lane|Not far away|Near the <land>] lived {B}, {B.who} who [loved|liked] <pastime>.
"""

ENDING: Final = """
The end.|And they lived happily ever after.|||
| That night, {A} [slept well and dreamed of a <beast>|told the <creature> about it|ate <many> <snacks> in bed].
| {A} and {B} stayed friends [forever|for <many> years|until they were old|even when it snowed].
| {G} told that story to [everyone {place}|the <creature>|{A.his} <family>] [many times|again and again|every <day>].
| And {A} still has the {thing} [today|in {A.his} room|<indoors>].
| "[Good night|Sleep well|Sweet dreams], {A}," {G} said<softly>.
"""

PLOTS: Final = {
    "lost": """
<When>, {A} could not find {A.his} {thing}, and {A.he} felt <sad>.
| <When>, {A} came home from the <land> without {A.his} {thing}.
| {A} had a {thing} that {A.he} took everywhere, but <once> it was gone.
{A} looked <indoors>, but [the {noun} was not there|there was only a <stuff>|{A.he} found only a <creature>].
| {A.He} [looked|peeked] <indoors><how> and found [a <size> <stuff>|<many> <snacks>|old <food>], but no {noun}.
| "[Oh no|Oh dear]! Where is my {noun}?" {A.he} [cried|asked|said]<softly>, and {A.he} looked <indoors>.
Then {A.he} [searched|looked|peeked] <outdoors>, but it was not there either.
| Was it <outdoors>? No, there was only a <beast>.
-
{B} <walk> over<how> and asked, "[What is wrong|Why are you so sad|What happened|What did you lose], {A}?"
| "I cannot find my {noun}," {A} told {B}<softly>, and a tear ran down {A.his} cheek.
"[Do not worry|Do not cry|Cheer up]," {B} <said><softly>. "[I will help you|We will look together|I can find it]."
| "Is it {colour} and [very|quite|a little] {look}?" asked {B}. "[I saw it|A <creature> had it] <once>!"
They [looked|searched] {place} for <many> [minutes|hours], and <many> [hens|frogs|snails|boys|girls] helped them.
| "[Where did you play|Where were you|What did you do] <once>?" {B.he} asked, and {A} thought of the <land>.
-
<Later>, {B} saw something {colour} <outdoors>, and it was the {noun}!
| <Later>, they found it <outdoors>, under a <stuff> and a <size> <stuff>.
| A <beast> had [carried|pulled|dragged] the {noun} to the <land> to make a nest, and it was sorry.
<Thanks>
| {A} held the {thing} tight and was <happy>.
{A} learned that [it is good to ask for help|friends make hard things easy|you should take care of your things].
| From that day on, {A} [always put|never left] {A.his} {noun} <indoors> [before bed|at night|on <day>].
""",
    "stuck": """
<When>, {A} was playing with {A.his} {thing} {place} when the wind took it up into a [tall|<size>|thorny] tree.
| <When>, {A} threw {A.his} {thing} [too high|over the <land>|as high as {A.he} could], and it landed on the roof.
{A} jumped [once|<many> times]<how>, but {A.he} was [too small|not a <creature>|much too short].
| {A.He} threw a <stuff> at it, and then a <size> <stuff>, but the {noun} did not [move|come down|fall].
| {A.He} tried to climb up<how>, but {A.he} slipped and [fell|landed] on {A.his} <body>.
-
{B} came along and <said><softly>, "I can [jump|climb] [higher|like a <creature>]!" But {B.he} could not do it.
| "[Let me help|Let me try|I have an idea]!" <said> {B}. {A} stood on {B}'s back, but they fell [down|over a <stuff>].
"We need a {tool}," {B} said<softly>, so they <walk> to {G}, who was <where>.
| {G} heard the noise and [came outside|<walk> over]<how>. "Try this {tool}," {G.he} <said><softly>.
"[Be careful|Bring it back soon|Bring it back by <day>|Do not run]," {G} said<softly>.
| {G} gave them <many> <snacks> [too|for the way|as well].
-
With the {tool}, it was easy: {A} held it, {B} [pushed|pulled|counted to <many>], and down came the {noun}!
| {B} held the {tool} [still|with both hands]<how> while {A} [reached up|stretched], and <once> turned into a good day.
<Thanks>
| They were <happy>, and they <play> until [dark|dinner|the sun went down|{G} called].
[Together|Working together], {A} and {B} could do what one could not do alone.
| {A} learned that [a good idea is better than a high jump|it helps to work together|it is good to stop and think].
""",
    "share": """
<When>, {G} [gave|brought|bought|made] {A} a {thing}, and {A} was <happy>.
| {A} got a {thing} when {A.he} was {age} years old, and {A.he} did not want [anyone|{B}|the <creature>] to touch it.
{B} saw it and asked<softly>, "[Can I play with it|May I hold it|Can I have a turn|May I see your {noun}], please?"
| {B} <walk> over<how> because {B.he} wanted to play with the {colour} {noun} too.
"No!" {A} <said><softly>. "[It is mine|You will break it|Go away|Go and play with a <stuff>]!"
| But {A} hid it <indoors>, and {B} <walk> [home|away]<how>.
-
{A} played alone {place}<how>, but soon {A.he} was [bored|lonely|<sad>].
| That night, {A} thought about {B} and [could not sleep|was <sad>|looked at the moon].
| {A} [tried to play|played] with a <beast>, but it [did not like|was afraid of|sat on] the {noun}.
"Why is {B} not here?" asked {G}<softly>. "[Did you share|Did you fight|Is it about the {noun}]?"
| {G} gave {A} <many> <snacks> and asked<softly>, "[Are they better with a friend|Who will you share them with]?"
"[It is not too late|You can still say sorry|Friends are better than a {noun}]," {G.he} <said><softly>.
| {A} [looked down|looked at the {noun}|thought about it]<how> and knew what to do.
-
{A} <walk> to {B}'s house[ by the <land>|]. "I am sorry," {A.he} <said><softly>. "[You go first|Here it is]."
| {A} took the {noun} to {B}<how>. "[It is more fun with you|You go first|It is yours too]," {A.he} <said><softly>.
They <play>, and then they <play>.
| All [day|afternoon|<day>] long, they took turns with the {thing} and <play>.
{A} learned that sharing [makes friends happy|is more fun than keeping|is a kind of magic].
| And {A} found that a shared {noun} is the best {noun} of all.
""",
    "afraid": """
{A} was afraid of {fear}, and {A.he} did not tell [anyone|{B}|{G}|{A.his} <family>].
| There was one thing that {A} did not like at all: {fear}.
When {A.he} thought of it, {A.his} <body> [shook|hurt|felt cold|turned to stone].
| [When it was near|Because of it], {A.he} always hid <indoors> with [a <beast>|{A.his} {noun}|<many> <snacks>].
<When>, {B} said<softly>, "[Come with me|Let us go together|Come and see the <creature>], {A}!"
| <When>, {A} was {place} with {B}, and they came close to {fear}.
But {A} [shook {A.his} head|hid behind {G}|stood still]<how>. "I am scared of {fear}," {A.he} <said><softly>.
| "[I cannot do it|I want to go home|I am too small]!" {A.he} <said><softly>, and {A.his} <body> shook.
-
"When I was {age}, I was scared of {fear} too," {G} <said><softly>.
| {G} [sat down|took {A}'s hand|made some <food>]<how>. "Everyone is scared of something," {G.he} <said><softly>.
"[I took <many> deep breaths|I sang a song|I thought of a <beast>], and then it was not so bad."
| "To be brave is to be scared and to [try|go on|take one small step|count to <many>]."
{A} [took a deep breath|closed {A.his} eyes|held {B}'s hand]<how> and counted to <many>.
| So {A} [held {A.his} {thing} tight|sang a song about a <creature>] and took [one|<many>] small steps.
-
"I did it!" {A} <said><softly>. "[I am not scared now|It was not so bad|I felt like a <creature>]!"
| {A} [opened {A.his} eyes|looked around]<how>, and there was [nothing to fear|only a <beast>|only {B}].
{B} [clapped|cheered|jumped up and down]<how> and was [glad|proud|happy] too.
| Then they <play> until [dark|dinner|the sun went down|{G} called].
{A} learned that [brave people are scared too|fear gets smaller when you look at it|it helps to talk about fear].
| After that, {A} was [a little|much] braver every [day|<day>|week].
""",
    "bake": """
<When>, {A} wanted to make {dish} for {G}, because [it was {G}'s birthday|{G} was sick|{G} loved <food>].
| {G} was [sick|tired|in bed with a cold], so <once> {A} decided to make {dish} for {G.him}.
{A} took a <size> bowl, [flour|butter|milk|<many> eggs] and some <food>, but there was no {missing}!
| {A.He} read the [book|list|old note]: {number} cups of {missing}. But the jar <indoors> was empty.
"[Oh no|Oh dear], [what now|what can I do without {missing}|the <creature> ate it]?" said {A}<softly>.
| {A} looked for {missing} <indoors> and <indoors>, and {A.he} was <sad>.
-
{A} <walk> to {B}<how>. "Do you have any {missing}?" {A.he} asked<softly>.
| So {A} <walk> to the shop near the <land><how>, and there {A.he} met {B}, who had a <size> [bag|jar] of {missing}.
"[Yes, a little|I do|Yes, <many> cups]," {B} <said><softly>. "[Can I help you|May I have a piece|What is it for]?"
| {B} [gave|sold] {A} the {missing} for [a <stuff>|<many> <snacks>|a song about a <creature>].
They [mixed|stirred|whisked] and <play>, and there was {missing} on the [floor|wall|<creature>] and on {B}'s <body>.
| {B} [stirred|tasted]<how> and {A} [counted|watched the clock]<how>, and it took {number} minutes.
<Later>, the house smelled [sweet|wonderful|warm|of <food>], and a <beast> [came to the door|looked in].
| <Later>, it was [brown|golden|done|a little black], and {B} put <many> <snacks> on the top.
-
When {G} saw it, {G.he} [smiled|clapped|had tears in {G.his} eyes]<how> and ate <many> [pieces|bites|spoons].
| "[What a lovely surprise|This is the best day|It is perfect|It tastes of <food>]!" {G.he} <said><softly>.
They ate it all together with <food>[ and <food>|] and were <happy>.
| {A} gave the [biggest|first|last] piece to [{B}|the <creature>]. <Thanks>
{A} learned that [a gift made with love is the best gift|it is fun to make things for others].
| And that is how {A} and {B} became [cooks|the best cooks {place}].
""",
    "build": """
<When>, {A} and {B} wanted to build a {building} {place} with [wood|sticks|boxes|stones] and [rope|nails|leaves|string].
| "Let us build a {building}!" <said> {A}<softly>, and {B} [liked the idea|nodded|jumped up|ran to get a <stuff>].
They worked<how> for <many> hours, and a <beast> [watched|helped|sat on the <stuff>].
| They [found|gathered|carried] [wood|sticks|boxes|stones] from the <land><how>.
But {A} was in a hurry. "[It is good enough|We are done|I want to play now]," {A.he} <said><softly>.
| {B} wanted to make it [strong|<colour>|round], but {A} wanted to make it [tall|<colour>|fast], and they argued<how>.
-
That night, the [wind|rain|storm|snow] came<how>, and in the morning the {building} was [gone|flat|in <many> pieces].
| [Crash|Crack|Bang]! A <size> [branch|goat|wave|<creature>] knocked it over.
{A} was <sad>. "[It is all my fault|Let us stop|I will never build again]," {A.he} <said><softly>.
| {A} [wanted to give up|kicked a <stuff>|sat down <where>] and was <sad>.
"[We can try again|Do not give up]," {B} <said><softly>. "This time we will [go slowly|ask {G}|use a {tool}]."
| {G} came to look. "[Start again|Tie it {number} times|Use bigger stones|Use a {tool}]," {G.he} <said><softly>.
-
They worked for <many> days: {A} [tied|held|measured]<how> and {B} [hammered|pulled|carried]<how>.
| This time {A} [listened|was patient|used a {tool}], and {B} put a {thing} on the top.
When the [wind|rain|storm|snow] came again, [nothing fell|only a <stuff> fell|the {building} stood like a <land>].
| Now the {building} was [strong|better than before|as strong as the <land>], and they were <happy>.
They <play> [in it|next to it|all <day>], and even the <beast> [came to look|seemed to like it].
| "[We did it|Look at that|It stands]!" they [cried|shouted], and they <play>.
{A} learned that [good work takes time|it is better to go slowly and do it well].
| Slow and steady is a good way to build, and {A} never forgot it.
""",
    "learn": """
{A} wanted to learn to {skill}, because {B} could do it [very well|so well|like a <creature>].
| <When>, {A} saw {B} {skill} {place}. "[I want to do that too|Teach me, please|Show me]!" {A.he} <said><softly>.
{A} tried<how> and [fell|failed] [on {A.his} <body>|{number} times|into the [mud|hay|<water>]].
| But it was [hard|harder than to catch a <creature>], and {A} [got wet|hurt {A.his} <body>|fell over a <stuff>].
"I will never learn it," {A} <said><softly>, and {A.he} was <sad>.
| {A} [wanted to stop|threw a <stuff>|was <sad>], and a <beast> [laughed|looked away|came to {A.him}].
-
"I fell too," <said> {B}<softly>. "I fell [a hundred|<many>|{number}] times, [and then it worked|but I went on]."
| "[Look at me|Watch]," {B} <said><softly>. "First [take a breath|bend your knees|look up], and then [go|let go]."
Every [day|morning|<day>], {A} practiced {place}<how>, and {G} [watched|brought <food>|helped {A.him} up].
| On [Monday|Tuesday] it was [bad|awful], on [Wednesday|Thursday] better, and on [Friday|Saturday] [good|fine].
-
<Later>, {A} could {skill}! "[Look at me|I can do it|I did it]!" {A.he} [cried|shouted|sang]<softly>.
| Then, [one day|at last|on day {number}], {A} could {skill}, [all alone|just like {B}|as well as a <creature>].
{B} [cheered|clapped|laughed]<how>, and {A} was <happy>.
| <Thanks> Then they went to {skill} {place}.
{G} was [proud|so proud] and made <food>[ and <food>|] for [them|everyone|{A} and {B}].
| Then {A} taught a <beast> to {skill} too, and it took {number} days.
{A} learned that [nobody is good at the start|you must fall before you fly|trying again is the secret].
| And when someone says "I cannot", {A} always says, "[Not yet|Try {number} times more|Try again]!"
""",
    "newcomer": """
<When>, a new [family|neighbor] came to live {place}, and with them came {B}, {B.who} who loved <pastime>.
| <When>, {A} saw {B.who} sitting alone <where>, and {B.his} name was {B}.
The others [laughed at|did not talk to|looked at] {B} because {B.he} had a <size> {noun}.
| {B} [was too shy to speak|held a {thing}|looked at {B.his} <body>]<how>, and nobody played with {B.him}.
-
{A} <walk> over<how>. "I am {A}," {A.he} said<softly>. "[Do you want to play|Do you like <food>|Are you new here]?"
| "[May I sit here|Can I see your {noun}|Do you know the <land>]?" {A} asked<softly>.
{B} looked up<how>. "[Yes|Yes, please|I like <food>|I am from the <land>]," {B.he} <said><softly>.
| "I do not know anyone," {B} <said><softly>. "[Only a <creature>|Only {G}]."
{A} gave {B} some <food>, and {B} showed {A} how to {skill}<how>.
| It turned out that {B} [could {skill}|knew a joke about a <creature>|was very <nature>], and {A} was <happy>.
-
They <play>, and <once> [<many>|all the] others came and <play> too.
| <Later>, everyone {place} knew {B}'s name, even the <beast>.
"[Will you come back|Can we be friends]?" asked {B}<softly>. "[Of course|Yes, every <day>|Yes]!" <said> {A}.
| <Thanks>
{A} learned that [a kind word can open a door|new friends are everywhere|it only takes a hello to make a friend].
| And {B} was never lonely again.
""",
    "hurt": """
<When>, {A} heard a [tiny|strange|soft] sound <outdoors>, and it was a [small|little|baby] {pet}.
| <When>, {A} and {B} found a [small|little|baby] {pet} <where> {place}.
Its [leg|foot|side|neck] was hurt, and it was [cold|shaking|hungry|wet|afraid of the <creature>].
| It [could not move|looked at {A}|hid under a <stuff>], and its [leg|foot|side|neck] was [red|hurt|stiff].
"[Poor thing|Do not be afraid]," {A} [said|whispered]<softly>, and {A.he} put it in {A.his} [hat|scarf|basket].
| "We must help it," {A} told {B}<softly>, and they made a bed out of [hay|leaves|a <colour> scarf|a <size> hat].
-
{G} looked at it<how>. "It needs [rest|food|water|sleep] and {number} days," {G.he} <said><softly>.
| {G} [washed|cleaned] it<how> and showed {A} how to feed it with <food>.
Every [day|morning|evening], {A} brought [water|<food>|fresh grass]<how>, and {B} sang to it.
| They named it {pet name}, and it ate <many> [seeds|crumbs|drops of milk|<snacks>].
On day {number}, {pet name} [stood up|opened its eyes|ate a whole berry|chased a <creature>]<how>.
| The little {pet} [slept <indoors>|sat on {B}'s <body>|played with a <stuff>], and {A} was <happy>.
-
<Later>, it was [strong|well] again. "It wants to go home," {G} <said><softly>.
| {A} and {B} took the {pet} to the <land><how> and let it go.
{A} was <sad>, but {A.he} knew that it was right.
| It looked back [once|<many> times]<how> and was gone.
But every [spring|morning|<day>], a {pet} came to the [window|garden|door], and {A} gave it <food>.
| {A} learned that [love sometimes means letting go|small things need big hearts|kindness comes back to you].
| And {A} was always kind to every <creature>, big or small.
""",
    "honest": """
<When>, {A} [ran|danced|chased a <creature>] in the house, and {G}'s {thing} fell and broke into {number} pieces.
| {G} had a {thing} that was {number} years old, and <once> {A} took it {place} without asking and broke it.
{A} was [scared|afraid] and hid the pieces <indoors><how>.
| "[Nobody saw me|I will hide it|I will say that the <creature> did it]," {A} thought, and {A.he} put it <indoors>.
{A.He} [told nobody|went outside|pretended to sleep|ate <food>], but {A.his} <body> [felt heavy|hurt].
| {A.He} was <sad> and could not [eat <food>|play|sleep].
-
"[Who broke my {noun}|Have you seen my {noun}|Where is my {noun}]?" asked {G}<softly>.
| {B} saw that {A} was not [happy|well] and asked<softly>, "What is wrong?"
{A} [looked away|went red]<how>. "Maybe [{B}|the <creature>|the wind] did it," {A.he} <said><softly>.
| {A} told {B} about the {noun}<how>. "[You should tell the truth|Go and tell {G}]," {B} <said><softly>.
At last {A.he} <walk> to {G}<how>. "I broke your {noun}," {A.he} <said><softly>. "I am [so|very|really] sorry."
| Then {A} [took a deep breath|began to cry]<how>. "It was me," {A.he} <said><softly>.
-
{G} was quiet for <many> minutes, and then {G.he} [smiled|hugged {A}|sighed]<how>.
| {G} was [a little|not|only a bit] angry, and {G.he} [sat down|took the pieces|made <food>]<how>.
"[A {noun} can be fixed|I was sad about the {noun}|Thank you for telling me]," {G.he} <said><softly>.
| "[We will fix it together|You were brave to tell me|The truth matters more than a {noun}]," {G.he} <said><softly>.
They used [glue|string|a {tool}] for {number} hours, and {A} felt <happy>.
| The {noun} was never the same, but {G} [liked|loved] it even more, and {A} and {B} <play>.
{A} learned that [the truth is better than a lie|it feels good to be honest|a lie is heavier than a stone].
| After that, {A} always told the truth, even when it was hard.
""",
    "race": """
<When>, there was a race from the <land> to the <land>, and the prize was a {thing}.
| "I am faster than [you|a <creature>]!" <said> {A}<softly>, so {A} and {B} had a race, and the prize was a {thing}.
{A} practiced {place} for <many> days and ate [only <food>|many <snacks>].
| {A} wanted to win [more than anything|very much|because of {A.his} <family>].
"One, two, three, go!" {G} [called|shouted]<softly>, and they ran past the <land>.
| When {G} rang the bell, {A} and {B} and a <beast> ran [past|around|through] the <land>.
-
{A} was in front, and {A.he} could [see|almost touch] the {noun} when {A.he} heard a cry.
| There were only {number} steps to go, and {A} [smiled|sang|looked back]<how>.
{B} had [fallen|tripped] over a <size> <stuff> and was holding {B.his} <body>.
| {B} was sitting <where>, and [nobody stopped|the <creature> ran past {B.him}].
{A} looked at the {noun} and then at {B}, and {A.he} [turned|ran] back<how>.
| "Go on, {A}!" <said> {B}<softly>, but {A} [shook {A.his} head|stopped]<how>.
"[Take my hand|Lean on me|A friend is better than a {noun}]," {A.he} <said><softly>.
| "[We finish together|You are more than a {noun} to me]," <said> {A}, and {A.he} helped {B.him} up.
-
They came in last, but everyone [cheered|clapped|stood up]<how>.
| A <beast> won the {noun}, but [nobody|not even {G}] looked at it.
{G} gave them [a {colour} ribbon|<many> <snacks>|a hug]. "[You won too|I saw what you did]," {G.he} <said><softly>.
| {A} was <happy>, and {B} was happy too. <Thanks>
{A} learned that [winning is not everything|friends come first|the last can be the best].
| And from then on, {A} and {B} always ran [side by side|together] [{place}|to the <land>].
""",
    "garden": """
<When>, {G} gave {A} {number} [tiny|small|round|{colour}] seeds from [the <land>|an old bag|a <creature>].
| {A} found a [strange|{colour}|small] seed <outdoors> and planted it {place}<how>.
"[It needs sun and water|It needs time|Put it in the ground and wait]," {G} <said><softly>.
| {A} gave it [water|a name|<food>] and waited<how>, but after <many> days there was [nothing|only a <creature>].
"Grow!" {A} <said><softly>, but the seed [did not grow|did not listen|slept], and {A} was <sad>.
| "[It is broken|It does not like me|It is slower than a <creature>]," {A.he} <said><softly>.
-
{B} laughed<how>. "[You cannot hurry a seed|A seed is not a {noun}|It is asleep]," {B.he} <said><softly>.
| {A} wanted to dig it up with a <stuff>. "[Stop|Wait|No]!" <said> {B}<softly>. "[It will die|It needs to sleep]."
So {A} waited<how>, and it rained on <day> and the sun came out on <day>.
| Every [morning|evening|<day>], {A} brought {number} cups of water, and {B} chased away a <beast>.
| {A} and {B} <play> next to the seed, and {G} [told it a story|gave it a {colour} ribbon].
-
<Later>, there was something green, and it grew until it was as tall as [{A}|{B}|{G}|the fence|a <creature>].
| Then one [morning|<day>], {A} [shouted|cried|called]<softly>, "[Come and look|It is here|It is green]!"
In the [summer|autumn], there were so many <snacks> that {A} gave some to [everyone|{B}|the <creature>].
| The flowers were {colour}, and {A} gave <many> of them to {G}, who was [glad|proud|pleased].
{A} learned that [good things take time|waiting is hard but worth it|you cannot hurry a flower].
| {A} was <happy> because {A.he} had waited.
""",
    "chest": """
<When>, {A} and {B} found an old map <indoors>, and it showed a [path|cross|tree|<land>] {place}.
| <When>, {A} was digging {place} for a <stuff> when {A.he} found a {colour} box with {number} locks.
"[Treasure|Gold|Let us go]!" {B} <said><softly>, and they took [a {tool}|<many> <snacks>|a <stuff>] with them.
| "[What is inside|Is it gold|Is it a secret|Is it a <creature>]?" asked {B}<softly>.
They <walk> past the <land> and took {number} steps [to the left|to the north|over a <stuff>]<how>.
| {A} [shook it|put {A.his} ear on it]<how>, and something like a <stuff> [rattled|rolled|rang].
-
But [a <size> stone was in the way|it was locked|there was a <beast> on it], and {A} was <sad>.
| Then they began to argue. "It is mine, I [saw|found] it first!" {A} <said><softly>.
{B} sat down <where>. "[A treasure is no good if we fight|Let us think|We are friends]," {B.he} <said><softly>.
| They asked {G}, who [smiled|laughed]<how>. "[I hid it when I was {age}|Use the {tool}]," {G.he} <said><softly>.
They used a {tool}, a <stuff> and [<many> <snacks>|a song|all their strength], and <once> it opened.
| {A} pushed<how>, {B} pulled<how>, and [with a crack|at last|after {number} minutes] it opened.
-
Inside there was a {thing} and a note: "[The best treasure is a friend|Share this with someone you love|Well done]."
| There was no gold inside, only a {thing}, a <size> <stuff> and <many> [shells|buttons|letters|pictures].
They shared it and were <happy>. Then they <play>.
| They put [a note|a drawing of a <creature>|a <size> <stuff>] in the box and hid it again <outdoors>.
{A} learned that [gold is not the only treasure|a secret is more fun with a friend].
| And maybe, one day, you will find it [too|<outdoors>].
""",
}
FRIEND_IS_NEW: Final = "newcomer"
"""The plot that brings the friend in, who is not spoken of before."""
ASIDES: Final = 0.45
"""How often something is noticed after a step."""


def _paragraphs(text: str) -> tuple[tuple[Choice, ...], ...]:
    """The steps of each paragraph."""
    return tuple(tuple(map(parse, _one_step(paragraph).splitlines())) for paragraph in text.split("\n-\n"))


def _one_step(text: str) -> str:
    """A step and its alternatives on one line."""
    return text.strip().replace("\n| ", "|")


_grammar: Final = Grammar(LISTS | {"Thanks": _one_step(THANKS)})
_aside: Final = parse(_one_step(ASIDE))
_slots: Final = {name: parse(text) for name, text in SLOTS.items()}
_plots: Final = {name: _paragraphs(text) for name, text in PLOTS.items()}
_names: Final = {he: names.split("|") for he, names in NAMES.items()}
_grown_ups: Final = {he: names.split("|") for he, names in GROWN_UPS.items()}
_opening: Final = _paragraphs(OPENING)[0]
_ending: Final = parse(_one_step(ENDING))


def generate(characters: int, seed: int = 0) -> str:
    """Exactly so many characters of stories, an empty line between two; a longer text begins with the shorter one."""
    if characters < 1:
        raise ConfigError("characters", "must be at least 1", characters, "Try 1000000.")
    draw = Random(stream(seed, "corpus", "stories")).random
    stories, length = [], 0
    while length < characters:
        stories.append(story(draw))
        length += len(stories[-1]) + 2
    return "\n\n".join(stories)[:characters]


def story(draw: Draw) -> str:
    """One story, each paragraph on a line."""
    slots = _world(draw)
    plot = pick(tuple(_plots), draw)
    new = plot == FRIEND_IS_NEW
    lines = [[_grammar.expand(step, slots, draw) for step in (_opening[:2] if new else _opening)]]
    for number, steps in enumerate(_plots[plot], start=1):
        lines.append([])
        for step in steps:
            lines[-1].append(_grammar.expand(step, slots, draw))
            if step is not steps[-1] and not (new and number == 1) and draw() < ASIDES:
                lines[-1].append(_grammar.expand(_aside, slots, draw))
    lines[-1].append(_grammar.expand(_ending, slots, draw))
    return with_articles("\n".join(" ".join(filter(None, sentences)) for sentences in lines))


def _world(draw: Draw) -> dict[str, str]:
    """Everything that stays the same throughout a story."""
    slots = {name: _grammar.expand(choice, {}, draw) for name, choice in _slots.items()}
    slots["thing"] = f"{slots['colour'] if draw() < 0.5 else slots['look']} {slots['noun']}"
    taken = ""
    for letter in "AB":
        he = pick(("he", "she"), draw)
        taken = pick([name for name in _names[he] if name != taken], draw)
        kind = slots[f"animal {letter}"] if draw() < 0.4 else CHILD[he]
        who = f"a {slots[f'manner {letter}']} {kind}"
        slots |= _person(letter, taken, he) | {f"{letter}.who": who, f"{letter}.Who": who.capitalize()}
    he = pick(("he", "she"), draw)
    return slots | _person("G", pick(_grown_ups[he], draw), he)


def _person(letter: str, name: str, he: str) -> dict[str, str]:
    """`A`, `A.he`, `A.him`, `A.his`, `A.himself` and `A.He`, `A.His`."""
    he, him, his = PRONOUNS[he]
    forms = {"he": he, "him": him, "his": his, "himself": f"{him}self", "He": he.capitalize(), "His": his.capitalize()}
    return {letter: name} | {f"{letter}.{key}": word for key, word in forms.items()}
