#!/bin/sh
# Builds a release in dist: for each platform a static, stripped binary, the list of its modules (CycloneDX), an archive and packages (deb, rpm, apk), and a file of checksums for all. The same commit and Go make the same bytes, whatever GOFLAGS says; the version is the commit's tag, or the commit.
set -eu
cd "$(dirname "$0")/.."
rm -rf dist
mkdir dist
for arch in amd64 arm64; do
	out=dist/loadgen-linux-$arch
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch GOFLAGS= go build -trimpath -buildvcs=auto -ldflags '-s -w -buildid=' -o "$out" ./cmd/loadgen
	GOFLAGS=-trimpath go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin -json -std -noserial -notimestamp -output "$out.cdx.json" "$out"
	sh tools/packages.sh dist "$arch"
done
(cd dist && sha256sum loadgen* >SHA256SUMS && sha256sum --quiet -c SHA256SUMS)
ls -l dist
