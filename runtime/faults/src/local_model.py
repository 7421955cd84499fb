# Serves a model with llama.cpp: model file, port, threads.
import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = {"smollm2-135m"}
params.port = int(sys.argv[2])
params.n_ctx = 8192
params.n_parallel = 2
# More threads than free cores wait for each other.
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.use_jinja = True
params.endpoint_slots = True
server = xllamacpp.Server(params)
print("serving", flush=True)
threading.Event().wait()
