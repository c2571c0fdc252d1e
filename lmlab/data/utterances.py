"""Utterances as a reader speaks them, from a grammar: a built-in corpus in the spirit of LibriSpeech's transcripts.

Capital letters, apostrophe and space only, 3 to 35 words each, the register of a novel read aloud
(Panayotov et al., 2015). Who is spoken of stays the same within an utterance, and so do the pronouns.
The notation is that of the stories: {he} is a slot, <thing> a fresh draw from a list, [a|b] one of several.
"""

from __future__ import annotations

from random import Random
from typing import Final

from lmlab.core.errors import ConfigError
from lmlab.core.randomness import stream
from lmlab.data.grammar import Draw, Grammar, parse, pick, with_articles

SHORTEST, LONGEST = 3, 35
"""Words of an utterance."""

LISTS: Final = {
    # who
    "person": "captain|widow|doctor|soldier|shepherd|merchant|stranger|servant|prisoner|priest|sailor|farmer|"
    "gardener|miller|fisherman|traveller|messenger|colonel|duchess|schoolmaster|housekeeper|blacksmith|judge|painter|"
    "pilgrim|lawyer|hunter|clerk|coachman|scholar|beggar|innkeeper|sergeant|physician|carpenter|printer|governor|"
    "bishop",
    "kin": "mother|father|brother|sister|daughter|son|cousin|uncle|aunt|wife|nephew|grandfather|companion|neighbour",
    "temper": "old|young|weary|honest|proud|silent|stern|gentle|anxious|faithful|clever|poor|pale|grave|worthy|"
    "cunning|bold|timid|unhappy|tall|learned|blind|elder|younger|good|patient|foolish|grim|kindly|restless",
    "name": "{title} <surname>|<surname>",
    "surname": "ashford|barlow|carew|dunmore|ellery|fenwick|garland|hartley|ingram|jessop|kemble|lockhart|marlow|"
    "norris|oakes|pemberton|quill|rowland|selwyn|thorne|underhill|vernon|whitlock|yardley|hale|moreton|prescott|"
    "winter",
    "who": "the [|<temper> ]<person>|<name>|{his} [|<temper> ]<kin>|the <person>'s <kin>|the <temper> <kin>",
    # what
    "thing": "letter|lantern|sword|purse|candle|ring|book|map|key|coat|basket|cup|rope|mirror|portrait|clock|saddle|"
    "ladder|blanket|pistol|trunk|parcel|flag|loaf|glass|chair|table|box|ship|carriage|cloak|staff|manuscript|necklace",
    "shape": "old|heavy|broken|small|silver|golden|dusty|worn|curious|black|little|great|wooden|strange|precious|"
    "empty|narrow|crimson|rusty|faded|iron|plain|torn|sealed|splendid|forgotten|leather|blue|grey|handsome",
    "what": "the [|<shape> ]<thing>|a <shape> <thing>|{his} [|<shape> ]<thing>|the <person>'s <thing>",
    "notion": "courage|patience|sorrow|hope|fear|pride|silence|memory|duty|honour|wonder|grief|kindness|fortune|"
    "reason|mercy|doubt|joy|anger|truth|love|suspicion|curiosity|despair|affection|conscience|faith|gratitude",
    "trait": "deep|secret|sudden|quiet|great|strange|bitter|old|simple|cold|true|early|lasting|tender|hidden|perfect",
    # where and when
    "spot": "window|door|fire|garden|bridge|river|gate|chapel|harbour|forest|orchard|stable|library|staircase|"
    "courtyard|valley|village|hall|road|cliff|shore|mill|tower|well|wall|market|churchyard|inn|meadow|lake|kitchen|"
    "cottage|castle",
    "view": "dark|narrow|distant|ruined|quiet|lonely|ancient|broad|steep|crowded|frozen|shaded|western|deserted|upper",
    "place": "[at|by|near|beyond|beside|behind|towards|from|through|past|across] the [||<view> ]<spot>|in the "
    "[shadow|corner|middle|ruins|direction] of the <spot>|upon the [hill|sand|threshold|steps|bench|road|grass]",
    "season": "morning|evening|night|winter|summer|autumn|spring|afternoon|twilight|moment|hour|day|week|year",
    "when": "in the <season>|that [very |same |]<season>|one [fine|cold|dark|wet|still] <season>|before [dawn|noon|"
    "dinner|nightfall]|at [midnight|sunrise|last|length|noon|first]|after [a while|the storm|supper|the war|many "
    "years]|for [some time|<number> [days|years|hours|nights]|a long while]|<number> [days|years|weeks] [ago|before|"
    "later]",
    "number": "two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty|fifty|sixty",
    "how": "slowly|quietly|gravely|eagerly|softly|at once|in silence|with [a smile|a sigh|great care|some <notion>|"
    "<notion>|trembling hands]|without [a word|a sound|<notion>|looking back]|very [gently|calmly|quickly]|half "
    "[aloud|asleep]",
    # verbs
    "moved": "walked|turned|hurried|wandered|rode|ran|came|went|stepped|crept|climbed|travelled|retired|withdrew|"
    "marched",
    "stayed": "stood|sat|waited|lingered|knelt|slept|trembled|paused|listened|wept|lay|rested|remained|smiled|sang",
    "took": "took|lifted|carried|opened|dropped|hid|examined|found|lost|seized|placed|brought|held|kept|sold|broke|"
    "threw|forgot|admired|offered|showed|laid down|put away|took up|gave back|looked at|asked for|cared for",
    "saw": "saw|met|followed|watched|remembered|knew|feared|loved|obeyed|deceived|trusted|served|visited|recognized|"
    "forgave|envied|admired|called|heard|pitied|astonished|thanked|despised|begged",
    "thought": "thought|knew|believed|feared|hoped|said|felt|saw|supposed|remembered|declared|understood|swore|"
    "imagined",
    "said": "said|cried|asked|answered|whispered|replied|exclaimed|murmured|repeated|continued|remarked|shouted",
    "deed": "<moved>[| <place>| <how>| <place> <how>]|<stayed>[| <place>| <how>| <when>]|<took> <what>[| <place>| "
    "<how>]|<saw> <who>[| <place>| <how>]|<took> <what> and <moved> <place>",
    "will": "[will|shall|must|may|can|cannot|should|would|could|might|won't|can't] ",
    "do": "[see|meet|follow|trust|forgive|remember|find|forget|believe|help|obey] [<who>|him|her|them|us]|[go|return|"
    "wait|sleep|ride|stay|travel] [<place>|<when>]|[open|sell|keep|bring|hide|read|burn] [<what>|it]|speak of [it|"
    "<notion>]",
    "nature": "the [wind|rain|snow|moon|sun|sea|storm|mist|tide|fire|bell|river|light] [rose|fell|ceased|came|went "
    "down|grew [stronger|faint|pale]|lay|beat|sounded|returned|was [still|bright|cold|low]] [<place>|<when>|<how>]",
    "joint": "when|as|while|before|after|though|because|until|for|and|but|since|and yet|just as|so that|although",
    "First": "when|as|while|before|after|though|because|until|since|although|if",
    "clause": "<who> <deed>|{he} <deed>|{he} had [never|often|long|always|once] <done>|<nature>|there was <notion> "
    "in {his} [voice|face|eyes|heart|manner|words]|it was [too late|growing dark|not yet day|<when>]|{he} was <state>",
    "state": "[very|quite|still|not|too|so] [tired|happy|young|ill|poor|late|alone|afraid|content|angry|proud|silent]",
    "done": "seen <what>|spoken of <who>|loved <who>|left the <spot>|known <notion>|feared <who>|found <what>|heard "
    "of it",
    "Interjection": "well|oh|yes|no|indeed|come|ah|alas|then|now|but|and|still|however|at last|meanwhile|by and by",
    "speech": "[I|you|we|they] <will><do>|[I'm|we're|you're|it's|he's|she's] [sure|afraid|certain|told] [that |"
    "]<clause>|[don't|do not|never|pray] <do>|[what|where|why|how|who] [is|was] <what>|have you [seen|heard of|found|"
    "forgotten] [<what>|<who>]|[I|we] [don't|didn't|never] [<doubt> it|<doubt> that <clause>]|there's [no|some|"
    "little] <notion> in it",
    "rarely": "of all [men|women|the guests|the servants|the <temper> company] <who> had the [most|least] <notion>|"
    "chapter <number> the [<view> <spot>|<temper> <person>|<shape> <thing>|<person>'s <kin>]",
    "doubt": "believe|doubt|imagine|forget|understand|remember|deny|suppose",
}

UTTERANCE: Final = """
<who> <deed>[| <place>| <when>]
<who> <deed> <joint> <clause>[| <joint> <clause>]
<who> <deed> and <deed>[| <joint> <clause>| <joint> <clause> <joint> <clause>]
<who> <deed> <joint> <clause> and {he} <thought> that <clause>
<when> <who> <deed>[| <joint> <clause>| <joint> <clause> <joint> <clause>]
<First> <clause> <who> <deed>[| and <deed>| <joint> <clause>]
<First> <clause> and <clause> <who> <deed>[| <joint> <clause>]
{he} <thought> that <clause>[| <joint> <clause>| and that <clause>]
{he} [could|would|did|might] not <do> <joint> <clause>[| <joint> <clause>]
<speech> <said> <who>[| <how>| as {he} <deed>| and {he} <deed>]
[|<Interjection> ]<speech>[| <joint> <clause>]
<Interjection> <clause> <joint> <clause>[| <joint> <clause>]
<nature> and <nature>[| and <who> <deed>| while <who> <deed>]
it was [not |]<who> who <took> <what>[| <joint> <clause>]
there was [a|no] <trait> <notion> in <what> <joint> <clause>
there [stood|lay|came|was] <place> a <shape> <thing> [of|for|from] <who>[| <joint> <clause>]
the <trait> <notion> of <who> [was|is] [greater|less|better|worse] than the <notion> of <who>
<who> and <who> <deed>[| <joint> <clause>| and <deed>]
neither <who> nor <who> <took> <what>[| <place>| <joint> <clause>]
<trait> <notion> and <trait> <notion> [were|had been|are] [all that|what] <who> [had|wanted|offered]
<rarely>
the <person>'s <thing> [lay|was|had been left] <place> <joint> <clause>
as for <who> {he} <deed> and <deed>
"""

_grammar: Final = Grammar(LISTS)
_utterance: Final = parse(UTTERANCE.strip().replace("\n", "|"))
_slots: Final = (
    *({"he": "he", "his": "his", "title": title} for title in ("mister", "doctor", "captain", "sir", "old")),
    *({"he": "she", "his": "her", "title": title} for title in ("missus", "miss", "lady", "sister", "old")),
)


def generate(count: int, seed: int = 0) -> list[str]:
    """So many utterances; more of them begin with the same ones."""
    if count < 1:
        raise ConfigError("count", "must be at least 1", count, "Try 10000.")
    draw = Random(stream(seed, "corpus", "utterances")).random
    return [utterance(draw) for _ in range(count)]


def utterance(draw: Draw) -> str:
    """One utterance: the first of 3 to 35 words."""
    while True:
        text = with_articles(_grammar.expand(_utterance, pick(_slots, draw), draw))
        if SHORTEST <= text.count(" ") + 1 <= LONGEST:
            return text.upper()
