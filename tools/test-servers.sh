#!/bin/sh
# Installs what the tests need besides Go: a redis-server, a memcached and an nginx to drive, nutcracker as a proxy before them, redis-py to drive the
# built-in node with, zsh and fish to complete commands in, a postgresql to keep runs in, an etcd, a mariadb and a node for the drivers and adapters of examples, a prometheus to scrape with, a chromium to open
# reports in, a JDK, the log library Mashona to compare with, the repository Fedora and Apache Ignite to load, which Maven fetches, a vegeta to read
# samples and nodes of Olric to load, which are built, a C compiler for the race detector, a systemd-analyze to check units with, an openssl to make certificates with, ip and nft for networks that fail, and for guests with persistent memory a QEMU, a busybox, mkfs for
# two file systems and a kernel, which is unpacked and not installed. Uses apt-get, with sudo when not root; where there is none, says what is missing
# and fails.
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}

# missing prints the packages that are needed and not installed, by their Debian names.
missing() {
	command -v redis-server >/dev/null || echo redis-server
	{ python3 -c 'import redis' || /usr/bin/python3 -c 'import redis'; } 2>/dev/null || echo python3-redis
	command -v zsh >/dev/null || echo zsh
	command -v fish >/dev/null || echo fish
	command -v memcached >/dev/null || echo memcached
	{ command -v nginx || ls /usr/sbin/nginx; } >/dev/null 2>&1 || echo nginx-light
	{ command -v postgres || ls /usr/lib/postgresql/*/bin/postgres; } >/dev/null 2>&1 || echo postgresql
	command -v chromium >/dev/null || echo chromium
	{ command -v prometheus && command -v promtool; } >/dev/null || echo prometheus
	command -v javac >/dev/null || echo default-jdk-headless
	command -v mvn >/dev/null || echo maven
	command -v node >/dev/null || echo nodejs
	command -v etcd >/dev/null || echo etcd-server
	{ command -v mariadbd || ls /usr/sbin/mariadbd; } >/dev/null 2>&1 || echo mariadb-server
	{ command -v nutcracker || ls /usr/sbin/nutcracker; } >/dev/null 2>&1 || echo nutcracker
	command -v qemu-system-x86_64 >/dev/null || echo qemu-system-x86
	command -v systemd-analyze >/dev/null || echo systemd
	command -v ip >/dev/null || echo iproute2
	command -v openssl >/dev/null || echo openssl
	{ command -v nft || ls /usr/sbin/nft; } >/dev/null 2>&1 || echo nftables
	command -v busybox >/dev/null || echo busybox-static
	command -v mkfs.ext4 >/dev/null || echo e2fsprogs
	command -v mkfs.xfs >/dev/null || echo xfsprogs
	if ! { command -v gcc || command -v cc || command -v clang; } >/dev/null; then
		echo gcc
		echo libc6-dev
	fi
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# archive FILE COORDINATES SHA256 has Maven fetch an archive to where the tests look for it.
archive() {
	dir=$cache/loadgen
	name=$1
	shift
	if [ ! -f "$dir/$name" ]; then
		part=$(mktemp -d)
		timeout 600 mvn --batch-mode --quiet dependency:copy "-Dartifact=$1" "-DoutputDirectory=$part"
		echo "$2  $part/$name" | sha256sum -c --quiet
		mkdir -p "$dir"
		mv "$part/$name" "$dir/$name"
		rmdir "$part"
	fi
}

archives() {
	archive mashona-logwriting-1.1.0.jar io.mashona:mashona-logwriting:1.1.0 ee3b0aecd98de8f5971786bbb6d623235d4f77916da19089ca2209b9910c4a21
	archive jboss-logging-3.4.1.Final.jar org.jboss.logging:jboss-logging:3.4.1.Final 8efe877d93e5e1057a1388b2950503b88b0c28447364fde08adbec61e524eeb8
	archive jetty-runner-9.4.54.v20240208.jar org.eclipse.jetty:jetty-runner:9.4.54.v20240208 53fd433d18f4de5e87d78fa75ce8633e1533df2284fe1e4bb9beaedd17b30650
	archive fcrepo-webapp-4.7.5.war org.fcrepo:fcrepo-webapp:4.7.5:war df37bdbc41879e1a1697acbf409f19df837351f7179a03c98a38b9f71f6bc173
	archive cache-api-1.0.0.jar javax.cache:cache-api:1.0.0 d2836213144722e2eb1d7461f6e2ea3349d6fbbf9cd5f345c7133bc29bd39ca1
	archive ignite-core-2.17.0.jar org.apache.ignite:ignite-core:2.17.0 99eb9daa15208b6aaf39adb11403b5f6a6380ace134a5100b9be349bc81901da
	archive ignite-indexing-2.17.0.jar org.apache.ignite:ignite-indexing:2.17.0 4993e6cf8a12ea3e5f87b9ead87b4b770052240fa381b70c141e05bc869489b6
	archive h2-1.4.197.jar com.h2database:h2:1.4.197 37f5216e14af2772930dff9b8734353f0a80e89ba3f33e065441de6537c5e842
	archive lucene-core-8.11.2.jar org.apache.lucene:lucene-core:8.11.2 8970925f43d789a70247e36c1ba5a2607baf4195c35afd0cd878642c95c37409
}

# guest_kernel unpacks the kernel that guests boot to where the tests look for it.
guest_kernel() {
	guest=$cache/loadgen-guest
	if ls "$guest"/kernel/boot/vmlinuz-* >/dev/null 2>&1; then
		return
	fi
	package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/ { print $2; exit }')
	mkdir -p "$guest"
	(
		cd "$guest"
		rm -rf kernel.part "$package"_*.deb
		apt-get download "$package"
		dpkg -x "$package"_*.deb kernel.part
		rm -f "$package"_*.deb
		mv kernel.part kernel
	)
}

# build_vegeta builds vegeta from the module that tools/go.mod names, to where the tests and make bench look for it.
build_vegeta() {
	command -v vegeta >/dev/null || go build -modfile=tools/go.mod -trimpath -o "$cache/loadgen/vegeta" github.com/tsenart/vegeta/v12
}

# build_olric builds the program that runs nodes of Olric to where plans/olric.sh looks for it.
build_olric() {
	go build -C tools/olric -trimpath -o "$cache/loadgen/olric" .
}

# build_ignite compiles the program that runs nodes of Ignite to where the tests look for it.
build_ignite() {
	classes=$cache/loadgen/ignite
	if [ ! -f "$classes/Node.class" ] || [ tools/ignite/Node.java -nt "$classes/Node.class" ]; then
		javac -nowarn -Xlint:none -d "$classes" -cp "$cache/loadgen/*" tools/ignite/Node.java 2>/dev/null ||
			javac -d "$classes" -cp "$cache/loadgen/*" tools/ignite/Node.java
	fi
}

wanted=$(missing | tr '\n' ' ')
if [ -n "$wanted" ]; then
	if ! command -v apt-get >/dev/null || { [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; }; then
		echo "test servers: please install (Debian's names): $wanted" >&2
		echo "test servers: and unpack the kernel of linux-image-cloud-amd64 in $cache/loadgen-guest/kernel" >&2
		exit 1
	fi
	echo "test servers: installing $wanted"
	# shellcheck disable=SC2086 # a list of packages
	install $wanted || { as_root apt-get update && install $wanted; }
	wanted=$(missing | tr '\n' ' ')
	if [ -n "$wanted" ]; then
		echo "test servers: still missing: $wanted" >&2
		exit 1
	fi
fi
archives
build_vegeta
build_olric
build_ignite
guest_kernel || { as_root apt-get update && guest_kernel; }
echo "test servers: all there"
