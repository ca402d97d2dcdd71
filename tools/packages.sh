#!/bin/sh
# Makes what is installed of a release: an archive, and packages for Debian, Red Hat and Alpine Linux (packages/nfpm.yaml).
#
#	packages.sh DIST ARCH
#
# DIST has the binary, loadgen-linux-ARCH; packages are written beside it. Version and time are those that the binary was built from, and nothing else
# of this machine goes in: the same binary makes the same bytes.
set -eu
umask 022
dist=$(cd "$1" && pwd)
arch=$2
cd "$(dirname "$0")/.."
binary=$dist/loadgen-linux-$arch
built=$(go version -m "$binary")
version=$(echo "$built" | sed -n 's/^[[:space:]]*mod[[:space:]]*[^[:space:]]*[[:space:]]*v\([^[:space:]]*\).*/\1/p')
version=${version:-0.0.0}
at=$(echo "$built" | sed -n 's/.*vcs\.time=//p')
SOURCE_DATE_EPOCH=$(date -u -d "${at:-1970-01-01}" +%s)
export arch version SOURCE_DATE_EPOCH TZ=UTC
name=loadgen_${version}_linux_$arch

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export stage="$temp/$name"
mkdir -p "$stage/plans" "$stage/completions" "$stage/man"
install -m 755 "$binary" "$stage/loadgen"
install -m 644 LICENSE README.md CHANGELOG.md "$stage"
install -m 644 plans/* "$stage/plans"
chmod 755 "$stage"/plans/*.sh
go build -o "$temp/loadgen" ./cmd/loadgen # for this machine
"$temp/loadgen" deploy systemd worker --join loadgen-coordinator:7464 | sed 's,/usr/local/bin/,/usr/bin/,' >"$stage/loadgen-worker.service"
for script in bash/loadgen.bash zsh/_loadgen fish/loadgen.fish; do
	"$temp/loadgen" completion "${script%/*}" >"$stage/completions/${script#*/}"
done
go run -C tools/packages . "$stage/man" "$version" | cat # no terminal, to whose width help texts would be wrapped
gzip -9n "$stage"/man/*

tar -C "$temp" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c "$name" | gzip -9n >"$dist/$name.tar.gz"
for format in deb rpm apk; do
	go tool -C tools/packages nfpm package --config nfpm.yaml --packager "$format" --target "$dist/$name.$format" >/dev/null
done
