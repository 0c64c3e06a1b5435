# make report   set up and run the whitepaper         PROFILE=smoke|quick|full, ARGS="--itch FILE"
# make test     set up and pass the tests
# make lab      JupyterLab on the notebooks
# make help     all of it

PYTHON  ?= python3
PROFILE ?= quick
ARGS    ?=
PYTEST_ARGS ?= -q -n auto --maxprocesses=4 --dist=loadfile

VENV := .venv
RUN  := $(VENV)/bin/python
# The stamp carries the folder's path: an editable install in a folder that was moved or copied points to the old place.
STAMP := $(VENV)/.photonlab-$(shell printf '%s' '$(CURDIR)' | cksum | cut -d' ' -f1)

.DEFAULT_GOAL := help
.PHONY: help setup report reference test test-bounds docs lab lint lock clean distclean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

setup: $(STAMP)  ## make .venv from requirements.lock

report: $(STAMP)  ## run the notebooks and build the page: out/<profile>/report.html
	$(RUN) -m photonlab report --profile $(PROFILE) $(ARGS)

reference: $(STAMP)  ## keep out/quick as the reference: its rows, machine and charts
	$(RUN) -m photonlab.lab.publish.reference out/quick

test: $(STAMP)  ## run the tests
	$(RUN) -m pytest $(PYTEST_ARGS)

# Other machine code than usual, so another cache.
test-bounds: $(STAMP)  ## run the tests with bounds checks in every kernel
	NUMBA_BOUNDSCHECK=1 PHOTONLAB_CACHE='$(CURDIR)/data/cache/bounds' $(RUN) -m pytest $(PYTEST_ARGS)

# Each floor by name, as the package's own list of names is short.
docs: $(STAMP)  ## write the documentation of the API: out/api/index.html
	$(RUN) -m pdoc -d numpy -o out/api photonlab $(addprefix photonlab.,machine kernels systems lab commands)

lab: $(STAMP)  ## open JupyterLab on the notebooks
	$(RUN) -m jupyterlab --notebook-dir notebooks $(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS)

lint: $(STAMP)  ## check style
	$(RUN) -m ruff check .

lock: $(STAMP)  ## write requirements.lock anew from what is installed in .venv
	{ sed -n '/^#/p' requirements.lock; $(RUN) -m pip freeze --exclude photonlab; } > requirements.lock.new
	mv requirements.lock.new requirements.lock

clean:  ## remove the cache (synthetic days, compiled kernels) and the runs
	rm -rf data/cache out

distclean: clean  ## remove .venv too
	rm -rf $(VENV)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "photonlab: needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) -V 2>&1 || true);" \
	       "choose another one: make PYTHON=python3.12 ..." >&2; exit 2; }
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "photonlab: '$(PYTHON) -m venv' failed; on Debian and Ubuntu: apt install python3-venv" >&2; exit 2; }
	$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@rm -f $(VENV)/.photonlab-*
	@touch $@
