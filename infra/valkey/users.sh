#!/bin/sh
# Writes the file of ACL users to standard output: users.sh ACL_FOLDER PASSWORD_FOLDER PREFIX
#
# NAME.acl in the first folder has the rules of user NAME, with {prefix} where the key prefix belongs and comments after #.
# NAME in the second has that user's password; the file that is written holds its SHA-256 only. Nobody else gets in.
set -eu
acl=$1 passwords=$2 prefix=$3
case $prefix in
'' | *[!A-Za-z0-9_.:-]*)
	echo "users.sh: prefix ($prefix) must be letters, digits, -, _, . and :" >&2
	exit 1
	;;
esac
echo "user default reset off"
for file in "$acl"/*.acl; do
	name=$(basename "$file" .acl)
	if [ ! -s "$passwords/$name" ]; then
		echo "users.sh: $passwords/$name has no password for user $name" >&2
		exit 1
	fi
	# The line break at the end is no part of the password: the functions drop it too.
	hash=$(tr -d '\n\r' <"$passwords/$name" | sha256sum | cut -d ' ' -f 1)
	rules=$(grep -v '^#' "$file" | sed "s/{prefix}/$prefix/g" | tr '\n' ' ')
	echo "user $name reset #$hash $rules"
done
