"""Send the requests of tenants to a running server in an open or closed loop, and record the times
and the outcome of every request."""
