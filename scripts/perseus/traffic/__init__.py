"""Send the requests of tenants: send times, contents, transport, and outcomes.

The input is a running server and an arrival process. The output is the times and the status of
every request.
"""
