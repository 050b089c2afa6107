"""What a reader sees of a comparison: tables, diagrams, pages. Nothing is computed here."""
