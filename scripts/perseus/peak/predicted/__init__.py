"""How much tenants can share a server, predicted from what each of them did alone (docs/method.md,
"Predicted sharing")."""
