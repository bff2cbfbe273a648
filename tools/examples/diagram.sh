# The space-time diagram of a schedule, as text.
stageline draw uniform:layers=4 --schedule zb_h1 --devices 4 --microbatches 6 --columns 88 --quiet
