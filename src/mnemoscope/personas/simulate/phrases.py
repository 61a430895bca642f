"""Phrases that fit any story: small talk of a log, around what the story itself says."""

from __future__ import annotations

ABOUTS = (
    "For anyone reading later, this concerns {about}.",
    "Background, as before: {about}.",
    "In plain words: {about}.",
    "All of this has to do with {about}.",
    "Filed under {about}.",
    "The matter at hand is {about}.",
    "To recall what stands behind it: {about}.",
    "Whoever opens this page should think of {about}.",
    "Context for the file: {about}.",
    "The wider subject, once more, is {about}.",
    "This belongs with {about}.",
    "Cross-filed with the papers on {about}.",
)
"""Said on days on which a fact becomes known, so that the day alone tells what it is about."""

ON = (
    "On {about}: ",
    "Concerning {about}: ",
    "As for {about}: ",
    "News of {about}: ",
)
"""Heads the sentence of a fact, where the description does not stand in one of its own."""

GOES_ON = (
    "{name} took up a good part of the morning.",
    "Kept a list of questions on {name} for {speaker}.",
    "Nothing on {name} that would need a decision today.",
    "{speaker} asked for a summary of {name} and got half a page.",
    "Tidied the notes on {name}.",
    "Short exchange with {speaker} on {name}, no surprises.",
    "{name} came up twice in passing.",
    "Went over {name} with {speaker} before lunch.",
    "A quiet day for {name}.",
    "{speaker} dropped in to talk about {name}.",
    "Put {name} on the list for the next round.",
    "Reread what we have on {name} so far.",
    "{speaker} sent remarks on {name}, which I filed.",
    "The last hour of the day went to {name}.",
    "Two small follow-ups on {name}, both closed by evening.",
    "{speaker} is content with the pace of {name}.",
    "{name} can rest until the next meeting.",
    "Shared the latest notes on {name} with {speaker}.",
)

AFTERWARDS = (
    "{name} was named as an example of how such things go.",
    "{speaker} asked for the old notes on {name}.",
    "Somebody compared today's trouble with {name}.",
    "Found a stray remark on {name} while looking for something else.",
    "{speaker} told a newcomer the story of {name}.",
    "A late question about {name} came in and was passed on to {speaker}.",
    "{speaker} still smiles when {name} is mentioned.",
    "The folder on {name} was moved to another shelf.",
    "What we learnt from {name} found its way into a talk by {speaker}.",
    "{name} came up again, long after everybody had stopped counting.",
)
"""What may still be said of an arc that is over."""

LOOKING_BACK = (
    "{speaker} wanted to know how the {noun} for {name} had come about; I sent the old papers.",
    "Somebody asked after the {noun} for {name} and got no answer from memory.",
    "The {noun} for {name} was quoted from memory, wrongly I think, and nobody checked.",
    "{speaker} used the {noun} for {name} as a yardstick without saying what it was.",
    "An old mail thread on the {noun} for {name} surfaced; I put it back.",
    "For a talk {speaker} needs the {noun} for {name}, to be looked up.",
    "The discussion of the {noun} for {name} from back then was retold with some colour.",
    "A footnote on the {noun} for {name} in the annual summary needs a source.",
)
"""Near misses long afterwards: what a thing was called, not what it was."""

DESCRIBED_BACK = (
    "A newcomer asked about {about}, and {speaker} told the short version.",
    "{speaker} mentioned {about} in passing.",
    "Searching the archive for {about} took longer than it should.",
    "The experience with {about} was cited once more.",
    "Somebody confused this with {about}, which was another matter.",
    "{speaker} keeps a sheet on {about} and shared it again.",
)

RUMOURS = (
    "People still talk of {thread}.",
    "{person} asked whether {thread} could happen again.",
    "A reminder went round: {thread} must not surprise us a second time.",
    "{person} wrote a checklist with {thread} at the top.",
    "Somebody blamed {thread} for a delay that had other reasons.",
    "The story of {thread} was told at lunch by {person}.",
    "Insurance wants a line on {thread}; {person} will see to it by {weekday}.",
    "{person} thought of {thread} first, but it was nothing of the kind.",
)
"""Near misses for what two arcs have in common: the cause, without what it held up."""

LOOPS = (
    "A few loose ends on {name}.",
    "Next steps on {name} to be agreed with {speaker}.",
    "An answer to {speaker} on {name}.",
    "A second reading of the notes on {name}.",
    "A date for the next talk on {name}.",
    "One more look at {name}.",
)

ROUTINE = (
    "Caught up with {person} for {n} minutes in the corridor.",
    "{person} asked me to keep {weekday} afternoon free, and I did.",
    "Wrote {n} short replies before the first meeting.",
    "{person} was late by {n} minutes and said so in advance.",
    "Filed {n} documents that had been lying about.",
    "Reminded {person} of a promise made last {weekday}.",
    "Shortened a note for {person} from two pages to one.",
    "{person} passed on greetings from somebody I could not place.",
    "Cleared {n} items from the list and added as many.",
    "A meeting planned for {weekday} was cancelled without regret.",
    "{person} wanted the minutes of last {weekday} once more.",
    "Found the missing attachment for {person} in an old thread.",
    "Spent {n} minutes on hold and got through in the end.",
    "{person} proposed to meet on {weekday} and then thought better of it.",
    "Compared calendars with {person}; {weekday} is the best day for most.",
    "Corrected {n} slips of the pen in yesterday's entry.",
    "{person} dropped a remark that I wrote down and struck out again.",
    "Took {n} calls for others and passed them on.",
    "Prepared a folder for {weekday} and left it on the shelf.",
    "{person} thanked {person} in front of everybody, deservedly.",
    "Put {n} questions aside for the talk with {person}.",
    "The room was too warm until {person} opened a window.",
    "Asked {person} to read a draft by {weekday}.",
    "Nothing came of the {weekday} plan, as {person} had expected.",
    "{n} forms to sign, all of them the ordinary kind.",
    "Swapped a slot with {person} to have the morning free.",
)

DAYS_OFF = (
    "Nothing on the calendar, and nothing was added.",
    "{n} messages came in, all of them automatic, all of them filed.",
    "No calls, no callers.",
    "Everything that can wait until {weekday} will wait.",
    "The log stays short today.",
    "One reminder went off and was put back to {weekday}.",
    "Skimmed the headlines of the trade press, kept {n} of them.",
    "A note from {person} arrived, with no hurry in it.",
    "Spent {n} minutes on sorting old notes.",
    "{person} sent holiday pictures to everybody.",
    "The phone stayed in its drawer.",
    "Out-of-office replies from {n} people.",
    "Weather fine, desk empty.",
    "Nothing happened that would need remembering.",
    "Checked in once around noon, found {n} newsletters.",
    "{person} asked for something and withdrew the question an hour later.",
    "Archived {n} threads that had gone silent.",
    "A delivery came and was left with the neighbours.",
    "No entries from anybody else.",
    "Made a short list for {weekday}, {n} items long.",
    "A system notice announced maintenance for {weekday}.",
    "Silence, and welcome.",
    "{person} is away as well until {weekday}.",
    "Read a little, wrote nothing.",
    "The usual digest went out to {n} readers.",
    "Declined an invitation for {weekday} on grounds of rest.",
    "{n} unread messages at noon, none of them for today.",
    "Heard from {person}, who only wanted to say hello.",
    "Moved {n} reminders to {weekday} without looking at them twice.",
    "Nobody asked for anything.",
    "{person} forwarded an article for {weekday}.",
    "Emptied the spam folder, {n} pages of it.",
    "The week ahead has {n} fixed points, and that is enough to know.",
    "An automatic survey wanted {n} minutes and did not get them.",
    "{person} wrote a postcard, as people used to.",
    "No notes were taken today apart from these.",
    "Put off a question from {person} until {weekday}.",
    "A calendar clash on {weekday} was noticed and left alone for now.",
    "Sorted {n} photographs of whiteboards into one folder.",
    "Long breakfast, short entry.",
    "{person} called by mistake and apologised.",
    "Left the desk as it was.",
    "Unsubscribed from {n} mailing lists.",
    "Backed up the notes of the week, {n} files.",
)

TITLES = (
    "Odds and ends",
    "Small things",
    "Around the desk",
    "Housekeeping",
    "In passing",
    "Everything else",
    "Other notes",
    "Daily round",
    "Bits and pieces",
)
GROUP_TITLES = (
    "Around the table",
    "Short updates",
    "Any other business",
    "Before we closed",
    "Round of news",
)
QUIET_TITLES = ("Quiet day", "Off duty", "Little to report", "A day off", "Slow day")
