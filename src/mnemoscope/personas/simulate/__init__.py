"""The simulator: makes daily logs, a ledger of facts and questions out of a story.

`simulator.simulate_persona` writes a persona's folder.
"""
