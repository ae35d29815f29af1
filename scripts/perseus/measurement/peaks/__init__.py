"""Find the peak of a cell, by search on a server or by prediction, and fill its record.

wanted_peak      determines the load line along which Perseus searches
dedicated_peaks  reads the peaks of cells with one tenant
measured_mixes   reads the results of a frontier's measured mixes, to choose the next mix
predicted_mix    predicts the limit of a mix, so that no server needs to run
searched_peak    searches for the limit on a server
preset_advice    names a preset that can certify a rate
peak_record      lists the keys of record.json for a peak
"""
