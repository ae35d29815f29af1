"""Send the requests of tenants to a running server, at times from an arrival process, and record
the times and the outcome of every request."""
