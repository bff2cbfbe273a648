stageline program --check deadlock.slp
