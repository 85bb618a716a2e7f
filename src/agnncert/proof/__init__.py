"""What is proved, and how anyone checks it. Imports numpy and scipy, never torch."""
