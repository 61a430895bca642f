"""The simulator: a story rolled out into daily logs, a ledger of facts and questions.

`simulator.simulate_persona` writes a persona's folder.
"""
