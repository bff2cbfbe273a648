# Why devices stand still: a recompute, orders that wait on equal stages, roles apart, a device to spare.
idle() { echo "$*"; stageline simulate "$@" --quiet | sed -n '/^device/,/^$/p'; }
idle uniform:layers=8 --devices 4 --microbatches 16 --schedule 1f1b:recompute=always
idle uniform:layers=8 --devices 4 --microbatches 16 --schedule naive
idle uniform:layers=8 --devices 4 --microbatches 16 --schedule gems
idle uniform:layers=8 --devices 4 --microbatches 16 --schedule hanayo
idle uniform:layers=8 --devices 4 --microbatches 16 --schedule dualpipe
idle uniform:layers=8 --devices 4 --microbatches 16 --schedule interleaved_1f1b
idle uniform:layers=8 --devices 4 --microbatches 16 --schedule chimera --link 1GB/s,10us
idle uniform:layers=8 --devices 4 --microbatches 16 --schedule pipefb
idle uniform:layers=8 --devices 6 --microbatches 16 --schedule stale_weights --partition 0-2,3-5,6-7
