"""Peaks of a cell: what is searched, the search on a server, and its record.

wanted_peak     the mix of a cell, and the dedicated peaks that its load line is made from
  dedicated_peaks  as cells with one tenant have found them
  measured_mixes   of a frontier, whose next mix they choose
  predicted_mix    or that they let predict, so that no server is asked
searched_peak   the search on a server
advice          what would let the next one find more
peak_record     what record.json says of a peak
"""
