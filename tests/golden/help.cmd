# The first screen of --help, and all of it in groups: headings and flags, without their descriptions.
for words in 'compare --help' 'plan -h' 'bound --help' 'bound --help=all' 'compare -h all' 'list --help all' 'help list'; do
  echo "\$ stageline $words"
  # shellcheck disable=SC2086  # words
  stageline $words | awk '/^  -/ { print "  " $1; next } !/^          /'
  echo
done
