"""Draft questions about a memory corpus by stratum, and keep a person's decisions about them."""
