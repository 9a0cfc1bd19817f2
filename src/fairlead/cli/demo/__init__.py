"""The sample work of `fairlead up --demo`: a small studio, and the people who want something from it."""
