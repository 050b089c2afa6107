import torch
from hypothesis import settings

# Tests work on tiny tensors: a second thread only costs (a trial suite went from 47 s to 6 s).
torch.set_num_threads(1)
settings.register_profile("patient", deadline=None)  # a busy machine is no failure
settings.load_profile("patient")
