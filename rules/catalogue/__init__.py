"""The rules, one per file; `all_rules.RULES` lists them in order."""
