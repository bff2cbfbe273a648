# Where does the difference between two schedules come from?
stageline compare resnet50-cpu --schedule 1f1b,zb_h1 --devices 4 --link 2.5GB/s,50us --why --quiet | sed -n '/^cause/,$p'
