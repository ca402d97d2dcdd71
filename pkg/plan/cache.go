package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Cache is how a target reads through a cache to its source.
type Cache struct {
	Scope    string        `json:"scope"`            // NoCache, SessionCache, SharedCache or RemoteCache
	Target   string        `json:"target,omitempty"` // the cache, for RemoteCache
	Memory   int64         `json:"memory_bytes"`     // for keys and values of all the target's caches together; 0 if others keep them
	Entries  int64         `json:"entries"`          // the most entries of all of them; 0 for as many as there is memory for
	TTL      time.Duration `json:"ttl_ns"`           // time until an entry expires; 0 for never
	Full     string        `json:"full"`             // evictWhenFull or clearWhenFull
	OnPut    string        `json:"on_put"`           // InvalidateOnPut, UpdateOnPut or KeepOnPut
	OnError  string        `json:"on_cache_error"`   // sourceOnError or failOnError
	Coalesce bool          `json:"coalesce"`         // a get waits for the load of its key that is under way
	Rollback float64       `json:"rollback"`         // share of scenarios that end in one
}

// The scopes of caches.
const (
	NoCache      = "none"    // each get asks the source
	SessionCache = "session" // each session has its own
	SharedCache  = "shared"  // all sessions of a worker have one
	RemoteCache  = "remote"  // another target
)

// What happens to a cache's entry when its key is put.
const (
	InvalidateOnPut = "invalidate"
	UpdateOnPut     = "update"
	KeepOnPut       = "none"
)

const (
	evictWhenFull = "evict" // the entry that was used longest ago is dropped
	clearWhenFull = "clear" // all entries are dropped

	sourceOnError = "source" // the source answers in a cache's place
	failOnError   = "fail"   // the op fails
)

// Wipes reports whether a full cache is emptied.
func (c *Cache) Wipes() bool { return c.Full == clearWhenFull }

// Fails reports whether an op fails when the cache does.
func (c *Cache) Fails() bool { return c.OnError == failOnError }

// OneLoop reports whether all sessions of a worker must be in one loop, since they share what a loop keeps. c may be nil.
func (c *Cache) OneLoop() bool { return c != nil && (c.Scope == SharedCache || c.Coalesce) }

// keeps reports whether loadgen keeps the entries itself.
func (c *Cache) keeps() bool { return c.Scope == SharedCache || c.Scope == SessionCache }

// drop clears the settings that caches of the scope do not use, so that a variant can change the scope alone.
func (c *Cache) drop() {
	if c.Scope == NoCache || c.Scope == RemoteCache {
		c.Memory, c.Entries, c.Full, c.Rollback = 0, 0, evictWhenFull, 0
	}
	if c.Scope == NoCache {
		c.TTL = 0
	}
	if c.Scope == NoCache || c.keeps() {
		c.Target = ""
	}
}

// behind lists the targets that a target which reads through a cache asks in turn.
func (t *Target) behind() (names []string) {
	if t.Source != "" {
		names = append(names, t.Source)
	}
	if t.Cache != nil && t.Cache.Target != "" {
		names = append(names, t.Cache.Target)
	}
	return names
}

// behind lists the targets that a phase reaches only through others.
func (p *Plan) behind(ph *Phase) (names []string) {
	direct := ph.named()
	for _, name := range direct {
		t := p.Target(name)
		if t == nil {
			continue
		}
		for _, behind := range t.behind() {
			if !slices.Contains(direct, behind) && !slices.Contains(names, behind) {
				names = append(names, behind)
			}
		}
	}
	return names
}

// source reads the source of a target, and the cache before it.
func (b *block) source(t *Target) {
	t.Source = b.Reference("source", "target")
	t.Driver = driver.Inside{}.Name()
	b.without("a target with a source has none", "Leave it out: what is asked is the cache and the source, each with its own.", "driver", "endpoints", "executor", "placement")
	t.Cache = &Cache{Scope: SharedCache, Full: evictWhenFull, OnPut: InvalidateOnPut, OnError: sourceOnError}
	inner := b.inner("cache")
	if inner == nil {
		b.missing("cache", `cache { scope = "shared", memory = "64MiB" }, with each on its own line, or scope = "none" to compare without one`)
		return
	}
	c := t.Cache
	inner.Expect([]string{"scope", "target", "memory", "entries", "ttl", "full", "on_put", "on_cache_error", "coalesce", "rollback"}, nil)
	inner.Text("scope", &c.Scope)
	if inner.Has("target") {
		c.Target = inner.Reference("target", "target")
	}
	dialect.Size(inner.Block, "memory", &c.Memory)
	dialect.Integer(inner.Block, "entries", &c.Entries)
	inner.Duration("ttl", &c.TTL)
	inner.Text("full", &c.Full)
	inner.Text("on_put", &c.OnPut)
	inner.Text("on_cache_error", &c.OnError)
	inner.Flag("coalesce", &c.Coalesce)
	inner.Share("rollback", &c.Rollback)
	c.drop()
}

// cache checks a target's source, and the cache before it.
func (v *validator) cache(t *Target, d driver.Driver, at part) {
	c, in := t.Cache, at.in("cache")
	if t.Source == "" || c == nil {
		v.fault(at.where+": a cache without a source", "Write source = target.NAME beside cache: what a miss asks.", in.path, at.path+".driver", at.path)
		return
	}
	if _, inside := d.(driver.Inside); !inside || t.Builtin != nil || t.TLS != nil || t.Replication != nil || len(t.Ops) > 0 || len(t.Endpoints) != 1 || t.Executor != EventLoop {
		v.fault(at.where+": a source beside what belongs to a server", "Write builtin, tls, replication and op in the targets that are asked: the source, and a remote cache.",
			at.path+".source", at.path)
	}
	v.reads(t, t.Source, "source", at)
	v.oneOf(in, "scope", c.Scope, NoCache, SessionCache, SharedCache, RemoteCache)
	v.oneOf(in, "full", c.Full, evictWhenFull, clearWhenFull)
	v.oneOf(in, "on_put", c.OnPut, InvalidateOnPut, UpdateOnPut, KeepOnPut)
	v.oneOf(in, "on_cache_error", c.OnError, sourceOnError, failOnError)
	if c.TTL != 0 {
		v.lasts(in, "ttl", c.TTL, time.Millisecond)
	}
	if !(c.Rollback >= 0 && c.Rollback <= 1) {
		v.fault(fmt.Sprintf("%s: rollback = %g", in.where, c.Rollback), `Write a share from 0 to 1, or "0.1%".`, in.path+".rollback")
	}
	switch {
	case c.Scope == RemoteCache && c.Target == "":
		v.fault(in.where+`: scope = "remote" without a target`, "Write target = target.NAME: the cache.", in.path+".scope", in.path)
	case c.Scope == RemoteCache && c.Target == t.Source:
		v.fault(fmt.Sprintf("%s: its target %s is its source", in.where, dialect.Quote(c.Target)), "Write two targets: a cache, and what it is before.", in.path+".target")
	case c.Scope == RemoteCache:
		v.reads(t, c.Target, "target", in)
	}
	if had := *c; c.Scope == NoCache || c.Scope == RemoteCache {
		if had.drop(); had != *c {
			v.fault(fmt.Sprintf("%s: attributes that caches of scope %s do not use", in.where, dialect.Quote(c.Scope)), "Check the plan's text again.", in.path)
		}
		return
	}
	if c.Memory == 0 {
		v.fault(in.where+": memory is missing", `Write memory = "64MiB", or another size: of keys and values, for all sessions together.`, in.path+".memory", in.path)
		return
	}
	v.holds(in, "memory", c.Memory, 1, maxNodeMemory)
	v.within(in, "entries", c.Entries, 0, maxKeys)
}

// reads checks that a target which reads through a cache may ask another.
func (v *validator) reads(t *Target, name, word string, at part) {
	other := v.plan.Target(name)
	switch {
	case other == nil && v.spare: // the other target may be among those that are used
	case other == nil:
		v.fault(fmt.Sprintf("%s: unknown target %s", at.where, dialect.Quote(name)), fmt.Sprintf("Write %s = target.NAME.", word), at.path+"."+word)
	case other == t || other.Source != "":
		v.fault(fmt.Sprintf("%s: its %s %s reads through a cache itself", at.where, word, dialect.Quote(name)), "Write the target that is asked in the end.", at.path+"."+word)
	case other.Retry != nil:
		v.fault(fmt.Sprintf("%s: its %s %s has retry", at.where, word, dialect.Quote(name)), "Leave retry out there: an op that reads through a cache is tried once.", "target."+name+".retry", at.path+"."+word)
	case other.Executor == Thread:
		v.fault(fmt.Sprintf("%s: its %s %s writes files", at.where, word, dialect.Quote(name)), "Write a target over a network.", at.path+"."+word)
	}
}

// cached checks a phase's ops on targets that read through caches.
func (v *validator) cached(ph *Phase, at part) {
	if !slices.Equal(ph.Behind, v.plan.behind(ph)) {
		v.fault(at.where+": behind is not what its targets ask in turn", "Check the plan's text again.", at.path)
	}
	for _, name := range ph.named() {
		t := v.plan.Target(name)
		if t == nil || t.Cache == nil {
			continue
		}
		path := "target." + name + ".cache"
		switch {
		case ph.Batch > 1:
			v.fault(fmt.Sprintf("%s: ops of %d keys, and target %s reads through a cache", at.where, ph.Batch, dialect.Quote(name)), "Leave batch out.", at.path+".batch")
		case ph.OnMiss != "":
			v.fault(fmt.Sprintf("%s: on_miss, and target %s fills its cache itself", at.where, dialect.Quote(name)), "Leave on_miss out.", at.path+".on_miss")
		case t.Cache.Rollback > 0 && len(ph.Scenarios) == 0 && ph.Levels() > 0:
			v.fault(fmt.Sprintf("%s: target %s has a rollback, but no scenario is there to end in one", at.where, dialect.Quote(name)),
				`Write scenario "NAME" { step "get" {} }, or leave rollback out.`, path+".rollback", at.path)
		}
		v.room(ph, t, path, at)
	}
}

// room checks that each cache has room for an entry.
func (v *validator) room(ph *Phase, t *Target, path string, at part) {
	c := t.Cache
	if !c.keeps() || c.Memory == 0 || ph.Sessions() < 1 || ph.Levels() == 0 {
		return
	}
	caches := int64(1)
	if c.Scope == SessionCache {
		caches = int64(ph.Sessions())
	}
	for _, name := range ph.DatasetsOn(t.Name) {
		d := v.plan.Dataset(name)
		if d == nil {
			continue
		}
		if each := c.Memory / caches; each < int64(d.Values.Size) {
			v.fault(fmt.Sprintf("%s: each of %d caches of target %s has %s, but a value of dataset %s takes up to %s", at.where, caches, dialect.Quote(t.Name), dialect.SizeText(each), dialect.Quote(name), dialect.SizeText(int64(d.Values.Size))),
				fmt.Sprintf("Write memory = %s or more: all caches of the target share it.", dialect.Quote(dialect.SizeText(int64(d.Values.Size)*caches*2))), path+".memory")
		}
	}
}
