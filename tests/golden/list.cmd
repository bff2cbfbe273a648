stageline list
