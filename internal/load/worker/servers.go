package worker

import (
	"maps"
	"slices"
	"strings"
)

// Facts of an endpoint.
const (
	Instance = "instance" // identifies its server among all servers, as the server itself reports; the other facts do not come from the server

	Address         = "address"          // the address where it was found; several, separated by commas, if sessions are divided between them
	OtherAddresses  = "other_addresses"  // addresses of the same name where other servers answered, which are not loaded
	SilentAddresses = "silent_addresses" // addresses of the same name where nobody answered
	Elsewhere       = "elsewhere"        // the worker that found another server by that name, and that server's address
)

// OneServer groups the endpoints that lead to one server, by the facts of each: they have an address in common, or the server says that it is the
// same one. Endpoints that are their only server's are left out.
func OneServer(endpoints []string, facts map[string]map[string]string) (groups [][]string) {
	at := map[string]int{} // by address and by instance
	for _, endpoint := range endpoints {
		keys := keysOf(facts[endpoint])
		own := len(groups)
		groups = append(groups, []string{endpoint})
		for _, key := range keys {
			other, known := at[key]
			if !known || other == own {
				at[key] = own
				continue
			}
			groups[other], groups[own] = append(groups[other], groups[own]...), nil
			for k, i := range at {
				if i == own {
					at[k] = other
				}
			}
			own = other
		}
	}
	return slices.DeleteFunc(groups, func(g []string) bool { return len(g) < 2 })
}

// keysOf lists what identifies a server.
func keysOf(facts map[string]string) (keys []string) {
	if at := facts[Address]; at != "" {
		for a := range strings.SplitSeq(at, ", ") {
			keys = append(keys, Address+" "+a)
		}
	}
	if is := facts[Instance]; is != "" {
		keys = append(keys, Instance+" "+is)
	}
	return keys
}

// MergeServers adds another worker's facts of a target's endpoints. The first worker's facts stay; if the other worker reached another server by the
// same name, Elsewhere says so.
func MergeServers(all, more map[string]map[string]string, worker string) {
	for endpoint, facts := range more {
		first, known := all[endpoint]
		if !known {
			all[endpoint] = maps.Clone(facts)
			continue
		}
		if first[Elsewhere] != "" || !differ(first, facts) {
			continue
		}
		first[Elsewhere] = "worker " + worker + ": " + facts[Address]
	}
}

// differ reports whether two workers have reached different servers by one name.
func differ(a, b map[string]string) bool {
	if x, y := a[Instance], b[Instance]; x != "" && y != "" {
		return x != y
	}
	return a[Address] != b[Address]
}
