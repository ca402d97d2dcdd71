package pgexport

import (
	"context"
	"fmt"
)

// migrations lead from an empty schema to the current one. A released migration never changes.
var migrations = [...]string{
	`
CREATE TABLE loadgen.runs (
	id            text PRIMARY KEY,
	plan          text NOT NULL,
	plan_digest   text NOT NULL,
	started_at    timestamptz NOT NULL,
	seconds       double precision NOT NULL,
	loadgen       text NOT NULL,
	experiment    text NOT NULL,
	variant       text NOT NULL,
	repetition    integer NOT NULL,
	completeness  text NOT NULL,
	validity      text NOT NULL,
	assertions    text NOT NULL,
	exit_code     integer NOT NULL,
	reasons       jsonb NOT NULL,
	labels        jsonb NOT NULL,
	workers       integer NOT NULL,
	hostname      text NOT NULL,
	kernel        text NOT NULL,
	cpu_model     text NOT NULL,
	environment   jsonb NOT NULL,
	plan_json     jsonb,
	pushed_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX runs_of_plan ON loadgen.runs (plan, started_at);
CREATE TABLE loadgen.phases (
	run           text NOT NULL REFERENCES loadgen.runs ON DELETE CASCADE,
	phase         text NOT NULL,
	position      integer NOT NULL,
	kind          text NOT NULL,
	model         text NOT NULL,
	target        text NOT NULL,
	driver        text NOT NULL,
	seconds       double precision NOT NULL,
	warmup        double precision NOT NULL,
	validity      text NOT NULL,
	offered_rate  double precision,
	achieved_rate double precision,
	PRIMARY KEY (run, phase)
);
CREATE TABLE loadgen.ops (
	run           text NOT NULL,
	phase         text NOT NULL,
	op            text NOT NULL,
	due           bigint NOT NULL,
	sent          bigint NOT NULL,
	ok            bigint NOT NULL,
	miss          bigint NOT NULL,
	conflict      bigint NOT NULL,
	quorum_failed bigint NOT NULL,
	timeout       bigint NOT NULL,
	error         bigint NOT NULL,
	shed          bigint NOT NULL,
	in_flight     bigint NOT NULL,
	bytes_in      bigint NOT NULL,
	bytes_out     bigint NOT NULL,
	PRIMARY KEY (run, phase, op),
	FOREIGN KEY (run, phase) REFERENCES loadgen.phases ON DELETE CASCADE
);
CREATE TABLE loadgen.figures (
	run           text NOT NULL,
	phase         text NOT NULL,
	op            text NOT NULL,
	figure        text NOT NULL,
	value         double precision NOT NULL,
	PRIMARY KEY (run, phase, op, figure),
	FOREIGN KEY (run, phase, op) REFERENCES loadgen.ops ON DELETE CASCADE
);
CREATE TABLE loadgen.series (
	run           text NOT NULL,
	phase         text NOT NULL,
	t             double precision NOT NULL,
	due           bigint NOT NULL,
	sent          bigint NOT NULL,
	ok            bigint NOT NULL,
	miss          bigint NOT NULL,
	bad           bigint NOT NULL,
	in_flight     bigint NOT NULL,
	response_mean double precision,
	response_p50  double precision,
	response_p99  double precision,
	PRIMARY KEY (run, phase, t),
	FOREIGN KEY (run, phase) REFERENCES loadgen.phases ON DELETE CASCADE
);
CREATE TABLE loadgen.observations (
	run           text NOT NULL,
	phase         text NOT NULL,
	observation   text NOT NULL,
	field         text NOT NULL,
	unit          text NOT NULL,
	counter       boolean NOT NULL,
	before        double precision,
	after         double precision,
	delta         double precision,
	rate          double precision,
	last          double precision,
	min           double precision,
	max           double precision,
	mean          double precision,
	PRIMARY KEY (run, phase, observation, field),
	FOREIGN KEY (run, phase) REFERENCES loadgen.phases ON DELETE CASCADE
);
CREATE TABLE loadgen.experiments (
	id            text PRIMARY KEY,
	plan          text NOT NULL,
	started_at    timestamptz NOT NULL,
	seconds       double precision NOT NULL,
	loadgen       text NOT NULL,
	repeat        integer NOT NULL,
	baseline      text NOT NULL,
	completeness  text NOT NULL,
	validity      text NOT NULL,
	assertions    text NOT NULL,
	exit_code     integer NOT NULL,
	labels        jsonb NOT NULL,
	pushed_at     timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE loadgen.comparisons (
	experiment    text NOT NULL REFERENCES loadgen.experiments ON DELETE CASCADE,
	variant       text NOT NULL,
	phase         text NOT NULL,
	op            text NOT NULL,
	metric        text NOT NULL,
	unit          text NOT NULL,
	score         double precision,
	error         double precision,
	ratio         double precision,
	ratio_lo      double precision,
	ratio_hi      double precision,
	p             double precision,
	p_holm        double precision,
	spread        double precision,
	mde           double precision,
	differs       boolean NOT NULL,
	finding       text NOT NULL,
	validity      text NOT NULL,
	PRIMARY KEY (experiment, variant, phase, op, metric)
);`,
	`ALTER TABLE loadgen.ops ALTER COLUMN bytes_out DROP NOT NULL;`,
	// What was pushed before is of an older loadgen: draws_as 0, schema 2, and no code.
	`
ALTER TABLE loadgen.runs ADD COLUMN draws_as integer NOT NULL DEFAULT 0;
ALTER TABLE loadgen.experiments
	ADD COLUMN schema integer NOT NULL DEFAULT 2,
	ADD COLUMN matters double precision;
ALTER TABLE loadgen.comparisons
	ADD COLUMN difference double precision,
	ADD COLUMN difference_lo double precision,
	ADD COLUMN difference_hi double precision,
	ADD COLUMN code text NOT NULL DEFAULT '';`,
	`
CREATE TABLE loadgen.phase_figures (
	run           text NOT NULL,
	phase         text NOT NULL,
	figure        text NOT NULL,
	value         double precision NOT NULL,
	PRIMARY KEY (run, phase, figure),
	FOREIGN KEY (run, phase) REFERENCES loadgen.phases ON DELETE CASCADE
);`,
	`
CREATE TABLE loadgen.series_figures (
	run           text NOT NULL,
	phase         text NOT NULL,
	t             double precision NOT NULL,
	figure        text NOT NULL,
	value         double precision NOT NULL,
	PRIMARY KEY (run, phase, t, figure),
	FOREIGN KEY (run, phase, t) REFERENCES loadgen.series ON DELETE CASCADE
);`,
}

// onlyOne is the key of the advisory lock for migrations: "loadgen" as a number.
const onlyOne = 0x6c6f616467656e

// migrate brings the schema up to date. It writes nothing to a current schema, so a user who may only insert can push.
func (db *DB) migrate(ctx context.Context) error {
	version, err := db.version(ctx)
	if err != nil {
		return err
	}
	if version == len(migrations) {
		return nil
	}
	return db.inTransaction(ctx, func() error {
		if _, err := db.exec(ctx, `SELECT pg_advisory_xact_lock($1)`, onlyOne); err != nil {
			return err
		}
		version, err := db.version(ctx) // another process may have migrated the schema in the meantime
		if err != nil {
			return err
		}
		if version == 0 {
			const begin = `CREATE SCHEMA IF NOT EXISTS loadgen;
				CREATE TABLE loadgen.migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`
			if err := db.script(ctx, begin); err != nil {
				return fmt.Errorf("make the schema loadgen: %w", err)
			}
		}
		for i := version; i < len(migrations); i++ {
			if err := db.script(ctx, migrations[i]); err != nil {
				return fmt.Errorf("bring the schema loadgen to version %d: %w", i+1, err)
			}
			if _, err := db.exec(ctx, `INSERT INTO loadgen.migrations (version) VALUES ($1)`, i+1); err != nil {
				return err
			}
		}
		return nil
	})
}

// version returns the version of the schema; 0 if there is none.
func (db *DB) version(ctx context.Context) (version int, err error) {
	// to_regclass is not used, because it may give a cached answer from before the lock.
	const look = `SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = 'loadgen' AND tablename = 'migrations'`
	there, err := db.number(ctx, look)
	if err != nil || there == 0 {
		return 0, err
	}
	n, err := db.number(ctx, `SELECT coalesce(max(version), 0) FROM loadgen.migrations`)
	if err != nil {
		return 0, err
	}
	if n > int64(len(migrations)) {
		return 0, fmt.Errorf("the schema loadgen is of version %d, this loadgen knows up to %d: use a newer one", n, len(migrations))
	}
	return int(n), nil
}
