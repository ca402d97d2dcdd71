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
);
-----
ALTER TABLE loadgen.ops ALTER COLUMN bytes_out DROP NOT NULL;
-----
-- What was pushed before is of an older loadgen: draws_as 0, schema 2, and no code.
ALTER TABLE loadgen.runs ADD COLUMN draws_as integer NOT NULL DEFAULT 0;
ALTER TABLE loadgen.experiments
	ADD COLUMN schema integer NOT NULL DEFAULT 2,
	ADD COLUMN matters double precision;
ALTER TABLE loadgen.comparisons
	ADD COLUMN difference double precision,
	ADD COLUMN difference_lo double precision,
	ADD COLUMN difference_hi double precision,
	ADD COLUMN code text NOT NULL DEFAULT '';
-----
CREATE TABLE loadgen.phase_figures (
	run           text NOT NULL,
	phase         text NOT NULL,
	figure        text NOT NULL,
	value         double precision NOT NULL,
	PRIMARY KEY (run, phase, figure),
	FOREIGN KEY (run, phase) REFERENCES loadgen.phases ON DELETE CASCADE
);
-----
CREATE TABLE loadgen.series_figures (
	run           text NOT NULL,
	phase         text NOT NULL,
	t             double precision NOT NULL,
	figure        text NOT NULL,
	value         double precision NOT NULL,
	PRIMARY KEY (run, phase, t, figure),
	FOREIGN KEY (run, phase, t) REFERENCES loadgen.series ON DELETE CASCADE
);
