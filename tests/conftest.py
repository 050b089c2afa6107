import torch

# Tests work on tiny tensors: a second thread only costs (a trial suite went from 47 s to 6 s).
torch.set_num_threads(1)
