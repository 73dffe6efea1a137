"""What the linguistic questions share: held-out choices, claims, columns and notes of tables."""
