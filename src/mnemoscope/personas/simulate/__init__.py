"""The simulator: a story rolled out into daily logs, a ledger of facts and questions."""
